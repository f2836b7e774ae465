// What is written in a format and read back is the same trace, row by row and column by column, in every format that is
// read.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/trace/attribution.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/write_trace.h"
#include "tests/profiles/write/rows_as_text.h"
#include "tests/profiles/write/sample_trace.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::rows_as_text;
using testing::sample_events;
using testing::session_as_text;

const std::vector<std::string> kFiles{"t.pt.trace.json.gz", "t.json", "t.sqlite"};

Trace written_and_read(const Trace& trace, const std::string& name) {
  const testing::TemporaryFolder folder;
  write_trace(trace, verify(trace), folder / name);
  return seal(import_trace(folder / name));
}

std::vector<std::string> only_in_first(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  std::vector<std::string> lines;
  std::set_difference(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(lines));
  return lines;
}

void expect_same(const Trace& trace, const std::string& name) {
  const Trace read = written_and_read(trace, name);
  EXPECT_EQ(only_in_first(rows_as_text(read), rows_as_text(trace)), std::vector<std::string>())
      << name << ": not written";
  EXPECT_EQ(only_in_first(rows_as_text(trace), rows_as_text(read)), std::vector<std::string>()) << name << ": not read";
  EXPECT_EQ(session_as_text(read.events().session), session_as_text(trace.events().session)) << name;
  EXPECT_EQ(read.flows().size(), trace.flows().size()) << name;
}

TEST(RoundTrip, EveryColumnOfEveryTableComesBackFromEveryFormat) {
  const Trace trace = seal(sample_events());
  ASSERT_EQ(trace.flows().size(), 6u);
  for (const std::string& name : kFiles) {
    expect_same(trace, name);
  }
}

TEST(RoundTrip, DecodesOfTheSyntheticEngineComeBack) {
  for (const SyntheticShape& shape :
       {SyntheticShape{.layers = 3, .steps = 5}, SyntheticShape{.layers = 4, .graph = true, .seed = 7},
        SyntheticShape{.cpu_only = true, .seed = 9}}) {
    const Trace trace = testing::synthetic(shape);
    ASSERT_GT(trace.events().spans.size(), 10u);
    for (const std::string& name : kFiles) {
      expect_same(trace, name);
    }
  }
}

TEST(RoundTrip, VerdictAndAccountOfTheFileAreThoseOfTheTrace) {
  const Trace trace = testing::synthetic({.layers = 3, .steps = 5, .graph = true});
  const TraceQuality quality = verify(trace);
  const Attribution account = attribute(trace, quality);
  ASSERT_TRUE(account.believable) << account.refusal;
  for (const std::string& name : kFiles) {
    const Trace read = written_and_read(trace, name);
    const TraceQuality again = verify(read);
    EXPECT_EQ(again.verdict, quality.verdict) << name << ": " << again.reason;
    const Attribution same = attribute(read, again);
    ASSERT_EQ(same.steps.size(), account.steps.size()) << name;
    for (std::size_t i = 0; i < account.steps.size(); ++i) {
      EXPECT_EQ(same.steps[i].gap_ns, account.steps[i].gap_ns) << name;
      EXPECT_EQ(same.steps[i].busy_ns, account.steps[i].busy_ns) << name;
      EXPECT_EQ(same.steps[i].host_stage_ns, account.steps[i].host_stage_ns) << name;
    }
  }
}

TEST(RoundTrip, ContradictionsAreKeptSoThatTheVerifierCanSeeThem) {
  TraceEvents events = sample_events();
  events.operations[0].end_ns = events.operations[0].start_ns - 5;
  events.operations[1].start_ns = 0;
  events.api_calls[0].end_ns = 0;
  events.api_calls[1].end_ns = 1'000;
  events.waits[0].end_ns = 7;
  events.spans[2].end_ns = 3;
  events.overheads[0].end_ns = 0;
  const Trace trace = seal(std::move(events));
  for (const std::string& name : kFiles) {
    expect_same(trace, name);
  }
}

TEST(RoundTrip, TimesBelowZeroComeBack) {
  TraceEvents events = sample_events();
  for (DeviceOperation& row : events.operations) {
    row.start_ns -= 1'012'000;
    row.end_ns -= 1'012'000;
  }
  const Trace trace = seal(std::move(events));
  for (const std::string& name : kFiles) {
    expect_same(trace, name);
  }
}

TEST(RoundTrip, IdsBeyond24BitsComeBackFromSqlite) {
  TraceEvents events = sample_events();
  for (ApiCall& call : events.api_calls) {
    call.thread += std::int64_t{1} << 30;
  }
  const Trace trace = seal(std::move(events));
  for (const std::string& name : kFiles) {
    expect_same(trace, name);
  }
}

TEST(RoundTrip, ATraceWithoutAnyRowComesBack) {
  TraceEvents events;
  events.session.uuid = "empty";
  const Trace trace = seal(std::move(events));
  for (const std::string& name : kFiles) {
    expect_same(trace, name);
  }
}

TEST(RoundTrip, WhatWasImportedIsWrittenAgainTheSame) {
  const testing::TemporaryFolder folder;
  const Trace trace = seal(sample_events());
  write_trace(trace, verify(trace), folder / "a.sqlite");
  const Trace first = seal(import_trace(folder / "a.sqlite"));
  write_trace(first, verify(first), folder / "b.json.gz");
  const Trace second = seal(import_trace(folder / "b.json.gz"));
  EXPECT_EQ(rows_as_text(second), rows_as_text(trace));
}

TEST(RoundTrip, ATraceForPerfettosViewerIsRefusedWithWhatToDo) {
  const testing::TemporaryFolder folder;
  const Trace trace = seal(sample_events());
  write_trace(trace, verify(trace), folder / "t.pftrace");
  try {
    import_trace(folder / "t.pftrace");
    FAIL() << "it was read";
  } catch (const ImportRefusal& error) {
    EXPECT_STREQ(error.what(),
                 "t.pftrace looks like a trace for Perfetto's viewer, and those are written here but not read: write "
                 "the same trace as .sqlite too (`decodelab trace ... --out t.sqlite`) and give that file.");
  }
}

}  // namespace
}  // namespace decodelab
