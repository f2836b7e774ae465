// A file appears whole or not at all, in the format that its name asks for, and never with a part of the events.
#include "profiles/write/write_trace.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "profiles/trace/attribution.h"
#include "profiles/trace/summary_json.h"
#include "tests/profiles/write/sample_trace.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

TEST(WriteTrace, TheEndingOfTheNameIsTheFormat) {
  EXPECT_EQ(trace_format("a/t.pftrace"), TraceFormat::perfetto);
  EXPECT_EQ(trace_format("t.pt.trace.json.gz"), TraceFormat::kineto_gzip);
  EXPECT_EQ(trace_format("t.json.gz"), TraceFormat::kineto_gzip);
  EXPECT_EQ(trace_format("t.json"), TraceFormat::kineto);
  EXPECT_EQ(trace_format("t.summary.json"), TraceFormat::summary);
  EXPECT_EQ(trace_format("t.sqlite"), TraceFormat::sqlite);
}

TEST(WriteTrace, AnEndingThatIsNotKnownIsRefusedWithThoseThatAre) {
  try {
    trace_format("trace.txt");
    FAIL() << "it has a format";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what())
                  .find("The name trace.txt says no format of a trace; it must end in one of .pftrace, "),
              0u);
  }
  EXPECT_THROW(trace_format(".pftrace"), std::invalid_argument);
}

TEST(WriteTrace, NothingButTheFileIsLeftAndAnOlderOneIsReplaced) {
  const testing::TemporaryFolder folder;
  const Trace trace = seal(testing::sample_events());
  for (const char* name : {"a.pftrace", "b.json.gz", "c.json", "d.sqlite"}) {
    folder.write(name, "old");
    write_trace(trace, testing::sample_quality(), folder / name);
    EXPECT_GT(std::filesystem::file_size(folder / name), 1'000u);
  }
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.pftrace", "b.json.gz", "c.json", "d.sqlite"}));
}

TEST(WriteTrace, MoreEventsThanAllowedAreRefusedAndNotCut) {
  const testing::TemporaryFolder folder;
  const Trace trace = seal(testing::sample_events());
  for (const char* name : {"a.pftrace", "b.json.gz", "c.json", "d.sqlite"}) {
    try {
      write_trace(trace, testing::sample_quality(), folder / name, {.most_events = 24});
      FAIL() << name << " was written";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find("The trace has 25 events, but "), 0u) << error.what();
    }
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>());
  write_trace(trace, testing::sample_quality(), folder / "a.pftrace", {.most_events = 25});
}

TEST(WriteTrace, TheSummaryHasTheVerdictAndTheSteps) {
  const testing::TemporaryFolder folder;
  const Trace trace = testing::synthetic({.steps = 4});
  write_trace(trace, verify(trace), folder / "t.summary.json");
  const auto document = nlohmann::json::parse(testing::read_file(folder / "t.summary.json"));
  EXPECT_EQ(document, nlohmann::json(summary_json(trace, verify(trace), attribute(trace, verify(trace)))));
}

TEST(WriteTrace, APlaceThatCannotBeWrittenIsNamedWithTheReason) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"a.pftrace", "b.json.gz", "d.sqlite"}) {
    const auto path = folder / "no such folder" / name;
    try {
      write_trace(seal(testing::sample_events()), testing::sample_quality(), path);
      FAIL() << "it was written";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()),
                "The trace could not be written to " + path.string() + ": No such file or directory.");
    }
  }
}

TEST(WriteTrace, AFullDiskIsNoticed) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "this system has no /dev/full";
  }
  const testing::TemporaryFolder folder;
  // Where the temporary file will be opened stands a disk without room.
  std::filesystem::create_symlink("/dev/full", folder / ("t.pftrace.tmp-" + std::to_string(getpid())));
  EXPECT_THROW(write_trace(seal(testing::sample_events()), testing::sample_quality(), folder / "t.pftrace"),
               std::runtime_error);
  EXPECT_EQ(folder.names(), std::vector<std::string>());
}

}  // namespace
}  // namespace decodelab
