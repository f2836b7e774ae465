// What compare_events() sees between a trace that was written and the one that was read.
#include <algorithm>

#include <gtest/gtest.h>

#include "profiles/trace/checks/round_trip.h"
#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

using testing::sealed_events;

using Strings = std::vector<std::string>;

TEST(RoundTrip, OfEqualEventsInAnotherOrderSeesNoDifference) {
  const TraceEvents written = sealed_events({});
  TraceEvents read = written;
  std::reverse(read.operations.begin(), read.operations.end());
  // Other ids for the same texts.
  TraceStrings strings;
  strings.id("something that no row uses");
  for (HostSpan& span : read.spans) span.name = strings.id(written.strings.text(span.name));
  for (ApiCall& call : read.api_calls) call.name = strings.id(written.strings.text(call.name));
  for (DeviceOperation& row : read.operations) row.name = strings.id(written.strings.text(row.name));
  for (CounterPoint& point : read.counters) point.series = strings.id(written.strings.text(point.series));
  read.strings = strings;
  EXPECT_EQ(compare_events(written, read), Strings{});
  EXPECT_EQ(round_trip_check({}).status, CheckStatus::passed);
  EXPECT_EQ(round_trip_check({}).title, "the written file holds the same");
}

TEST(RoundTrip, NamesALostRowALostFlowALongerDurationAndAnotherName) {
  const TraceEvents written = sealed_events({});
  TraceEvents read = written;
  read.waits.pop_back();
  read.operations[3].api_row = kNoRow;
  read.spans[2].end_ns += 5;
  read.api_calls[1].name = read.strings.id("cudaLaunchKernelExC");
  const Strings differences = compare_events(written, read);
  ASSERT_EQ(differences.size(), 5U);
  EXPECT_EQ(differences[0], "the durations of spans differ by 5 ns in all");
  EXPECT_NE(differences[1].find("waits written"), std::string::npos);
  EXPECT_NE(differences[2].find("durations of waits"), std::string::npos);
  EXPECT_NE(differences[3].find("flows written"), std::string::npos);
  EXPECT_NE(differences[4].find("'cudaLaunchKernelExC' 0 times written, 1 read"), std::string::npos);
  const TraceCheck check = round_trip_check(differences);
  EXPECT_EQ(check.id, "I14");
  EXPECT_EQ(check.status, CheckStatus::failed);
}

TEST(RoundTrip, AllowsTheRoundingAndTheGapsOfAFormat) {
  const TraceEvents written = sealed_events({});
  TraceEvents read = written;
  read.operations[3].end_ns += 3;
  read.overheads.clear();
  EXPECT_EQ(compare_events(written, read, {.overheads = false, .rounding_ns = 1}), Strings{});
  EXPECT_FALSE(compare_events(written, read, {.rounding_ns = 1}).empty());
  EXPECT_FALSE(compare_events(written, read, {.overheads = false}).empty());
}

TEST(RoundTrip, ErrorsOfAReaderFailItsCheck) {
  EXPECT_EQ(importer_check({}).status, CheckStatus::passed);
  const TraceCheck check = importer_check({"flow_no_enclosing_slice: 3"});
  EXPECT_EQ(check.id, "I15");
  EXPECT_EQ(check.status, CheckStatus::failed);
  EXPECT_EQ(check.evidence, "flow_no_enclosing_slice: 3");
}

}  // namespace
}  // namespace decodelab
