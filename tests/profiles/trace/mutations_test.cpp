// Each way to break a trace is seen by its own check and by no other.
#include <algorithm>

#include <gtest/gtest.h>

#include "profiles/trace/checks/check.h"
#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

using testing::check_of;
using testing::Ids;
using testing::noticed_by;
using testing::operation_of_step;
using testing::sealed_events;

constexpr SyntheticShape kShape{.layers = 3, .kernels_per_layer = 6, .steps = 6};

SyntheticShape with_causes(std::vector<GapCause> causes) {
  SyntheticShape shape = kShape;
  shape.causes = std::move(causes);
  return shape;
}

/// The host is far ahead, so that a kernel can end a little later or start a little earlier without touching anything
/// else.
TraceEvents queued_events() { return sealed_events(with_causes({GapCause::dependency})); }

TEST(Mutations, AnUntouchedTraceIsOkInBothTiersWithAndWithoutAGraph) {
  for (const TraceTier tier : {TraceTier::kernels, TraceTier::causes}) {
    for (const bool graph : {false, true}) {
      SyntheticShape shape = kShape;
      shape.graph = graph;
      const TraceQuality quality = verify(seal(synthetic_trace(shape, tier).events));
      EXPECT_EQ(noticed_by(quality), Ids{}) << quality.reason;
      EXPECT_EQ(quality.verdict, TraceVerdict::ok);
      EXPECT_EQ(quality.reason, "");
    }
  }
}

TEST(Mutations, ADroppedRecordIsMissedByTheCountOfLaunches) {
  for (const TraceTier tier : {TraceTier::kernels, TraceTier::causes}) {
    TraceEvents events = sealed_events(kShape, tier);
    events.operations.erase(events.operations.begin() + static_cast<std::ptrdiff_t>(operation_of_step(events, 2, 4)));
    // Steps of a trace without calls come from the counts, which no longer add up.
    for (DeviceOperation& operation : events.operations) {
      operation.step = kNoStep;
    }
    const TraceQuality quality = verify(seal(events));
    EXPECT_EQ(noticed_by(quality), Ids{"I8"});
    EXPECT_EQ(quality.verdict, TraceVerdict::broken);
  }
}

TEST(Mutations, ADroppedRecordThatNobodyCountedMakesItsStepOdd) {
  TraceEvents events = sealed_events(kShape);
  events.session.launches_counted = false;
  events.operations.erase(events.operations.begin() + static_cast<std::ptrdiff_t>(operation_of_step(events, 2, 4)));
  const TraceQuality quality = verify(seal(events));
  EXPECT_EQ(noticed_by(quality), Ids{"I9"});
  EXPECT_EQ(quality.verdict, TraceVerdict::warn);
  EXPECT_EQ(check_of(quality, "I9").evidence,
            "steps that did not do what others of their kind did: step 2 has 1 operations less and 0 more");
}

TEST(Mutations, ADuplicatedCorrelationGivesOneLaunchTwoOperations) {
  TraceEvents events = sealed_events(kShape);
  const std::uint32_t first = events.operations[operation_of_step(events, 1, 3)].correlation;
  events.operations[operation_of_step(events, 1, 4)].correlation = first;
  const TraceQuality quality = verify(seal(events));
  EXPECT_EQ(noticed_by(quality), Ids{"I3"});
  EXPECT_EQ(quality.verdict, TraceVerdict::broken);
}

TEST(Mutations, ANodeThatRanTwiceInOneReplayIsAWrongPair) {
  SyntheticShape shape = kShape;
  shape.graph = true;
  TraceEvents events = sealed_events(shape);
  DeviceOperation& second = events.operations[operation_of_step(events, 1, 4)];
  second.graph_node_id = events.operations[operation_of_step(events, 1, 3)].graph_node_id;
  EXPECT_EQ(noticed_by(verify(seal(events))), Ids{"I3"});
}

TEST(Mutations, AZeroedStampIsSeenByItself) {
  for (const bool end_too : {false, true}) {
    TraceEvents events = sealed_events(kShape);
    DeviceOperation& operation = events.operations[operation_of_step(events, 3, 2)];
    operation.start_ns = 0;
    if (end_too) {
      operation.end_ns = 0;
    }
    const TraceQuality quality = verify(seal(events));
    EXPECT_EQ(noticed_by(quality), Ids{"I2"});
    EXPECT_EQ(quality.verdict, TraceVerdict::broken);
  }
}

TEST(Mutations, AnInvertedStampIsSeenByItself) {
  TraceEvents events = sealed_events(kShape);
  DeviceOperation& operation = events.operations[operation_of_step(events, 3, 2)];
  std::swap(operation.start_ns, operation.end_ns);
  EXPECT_EQ(noticed_by(verify(seal(events))), Ids{"I2"});
}

TEST(Mutations, AZeroedStampOutsideOfTheStepsIsAWarning) {
  TraceEvents events = sealed_events(kShape);
  events.steps[3].excluded_reason = "warm-up";
  events.operations[operation_of_step(events, 3, 2)].start_ns = 0;
  const TraceQuality quality = verify(seal(events));
  EXPECT_EQ(noticed_by(quality), (Ids{"I2", "I10"}));
  EXPECT_EQ(quality.verdict, TraceVerdict::warn);
}

TraceEvents with_device_clock_shifted(std::int64_t ns) {
  TraceEvents events = sealed_events(kShape);
  for (DeviceOperation& operation : events.operations) {
    operation.start_ns += ns;
    operation.end_ns += ns;
  }
  return events;
}

TEST(Mutations, ADeviceClockFiveMicrosecondsBehindStartsKernelsBeforeTheirLaunch) {
  const TraceQuality quality = verify(seal(with_device_clock_shifted(-5000)));
  EXPECT_EQ(noticed_by(quality), Ids{"I4"});
  EXPECT_EQ(quality.verdict, TraceVerdict::broken);
  EXPECT_LT(check_of(quality, "I4").value, -kClockToleranceNs);
}

TEST(Mutations, ADeviceClockFiveMicrosecondsAheadEndsKernelsAfterTheWaitForThem) {
  const TraceQuality quality = verify(seal(with_device_clock_shifted(5000)));
  EXPECT_EQ(noticed_by(quality), Ids{"I11"});
  EXPECT_EQ(quality.verdict, TraceVerdict::broken);
  EXPECT_GT(check_of(quality, "I11").value, kClockToleranceNs);
}

TEST(Mutations, AClockThatIsReadOutsideOfItsBracketIsSeenInBothDirections) {
  for (const std::int64_t shift_ns : {-5000, 5000}) {
    TraceEvents events = sealed_events(kShape);
    for (ClockBracket& bracket : events.session.clocks) {
      bracket.device_ns += shift_ns;
    }
    EXPECT_EQ(noticed_by(verify(seal(events))), Ids{"I11"});
  }
}

TEST(Mutations, AWideBracketAndADriftAreSeen) {
  TraceEvents wide = sealed_events(kShape);
  for (ClockBracket& bracket : wide.session.clocks) {
    bracket.after_ns += 1000;
  }
  EXPECT_EQ(verify(seal(wide)).verdict, TraceVerdict::broken);
  EXPECT_EQ(noticed_by(verify(seal(wide))), Ids{"I11"});
  TraceEvents drifting = sealed_events(kShape);
  drifting.session.clocks.back().device_ns += 1050;
  EXPECT_EQ(verify(seal(drifting)).verdict, TraceVerdict::warn);
  EXPECT_EQ(noticed_by(verify(seal(drifting))), Ids{"I11"});
}

TEST(Mutations, StepsThatLostAllTheirRowsAreEmpty) {
  SyntheticShape shape = kShape;
  shape.steps = 32;
  for (const bool counted : {true, false}) {
    TraceEvents events = sealed_events(shape);
    events.session.launches_counted = counted;
    const auto within = [&](const auto& row) {
      return row.start_ns >= events.steps[3].start_ns && row.start_ns < events.steps[30].end_ns;
    };
    std::erase_if(events.operations, [](const DeviceOperation& row) { return row.step >= 3 && row.step <= 30; });
    std::erase_if(events.api_calls, within);
    std::erase_if(events.waits, within);
    const TraceQuality quality = verify(seal(events));
    EXPECT_EQ(noticed_by(quality), Ids{"I9"});
    EXPECT_EQ(quality.verdict, TraceVerdict::broken);
    EXPECT_EQ(check_of(quality, "I9").evidence,
              "28 of 32 steps have no device operation at all: step 3; step 4; step 5; step 6; step 7; and 23 more");
  }
}

TEST(Mutations, OneOfManyReplaysIsMissedByTheCountOfReplays) {
  SyntheticShape shape = kShape;
  shape.graph = true;
  for (const TraceTier tier : {TraceTier::kernels, TraceTier::causes}) {
    TraceEvents events = sealed_events(shape, tier);
    std::erase_if(events.operations, [](const DeviceOperation& row) { return row.graph_id != 0 && row.step > 0; });
    for (DeviceOperation& operation : events.operations) {
      operation.step = kNoStep;
    }
    const TraceQuality quality = verify(seal(events));
    EXPECT_EQ(noticed_by(quality), Ids{"I8"});
    EXPECT_NE(check_of(quality, "I8").evidence.find("1 of 6 graph replays"), std::string::npos)
        << check_of(quality, "I8").evidence;
  }
}

TEST(Mutations, OverlappingKernelsOfOneStreamAreAWarningAndLieInTwoLanes) {
  TraceEvents events = queued_events();
  const std::size_t row = operation_of_step(events, 2, 5);
  events.operations[row].end_ns = events.operations[row + 1].start_ns + 1;
  const Trace trace = seal(events);
  const TraceQuality quality = verify(trace);
  EXPECT_EQ(noticed_by(quality), Ids{"I5"});
  EXPECT_EQ(quality.verdict, TraceVerdict::warn);
  EXPECT_NE(check_of(quality, "I5").evidence.find("runs into"), std::string::npos);
  EXPECT_EQ(trace.events().operations[row].lane, 0);
  EXPECT_EQ(trace.events().operations[row + 1].lane, 1);
}

TEST(Mutations, ADurationPastItsSuccessorIsAnOverlapThatHoldsIt) {
  TraceEvents events = queued_events();
  const std::size_t row = operation_of_step(events, 2, 5);
  events.operations[row].end_ns = events.operations[row + 1].end_ns + 100;
  const TraceQuality quality = verify(seal(events));
  EXPECT_EQ(noticed_by(quality), Ids{"I5"});
  EXPECT_NE(check_of(quality, "I5").evidence.find("wholly holds"), std::string::npos);
}

TEST(Mutations, BranchesOfOneGraphMayOverlap) {
  SyntheticShape shape = kShape;
  shape.graph = true;
  TraceEvents events = sealed_events(shape);
  const std::size_t row = operation_of_step(events, 2, 5);
  events.operations[row].end_ns = events.operations[row + 1].end_ns;
  const TraceQuality quality = verify(seal(events));
  EXPECT_EQ(noticed_by(quality), Ids{});
  EXPECT_NE(check_of(quality, "I5").evidence.find("1 between branches"), std::string::npos);
}

TEST(Mutations, ASpanThatWasLeftOpenIsNamed) {
  for (const SpanKind kind : {SpanKind::step, SpanKind::layer, SpanKind::stage, SpanKind::operator_call}) {
    TraceEvents events = sealed_events(kShape);
    const auto in_step_2 = [&](const HostSpan& span) { return span.kind == kind && span.step == 2; };
    std::find_if(events.spans.begin(), events.spans.end(), in_step_2)->end_ns = 0;
    const TraceQuality quality = verify(seal(events));
    EXPECT_EQ(noticed_by(quality), Ids{"I6"}) << static_cast<int>(kind);
    EXPECT_EQ(quality.verdict, TraceVerdict::broken);
  }
}

TEST(Mutations, SpansThatCrossAreNamed) {
  TraceEvents events = sealed_events(kShape);
  const auto is_stage = [](const HostSpan& span) { return span.kind == SpanKind::stage && span.step == 2; };
  const auto first = std::find_if(events.spans.begin(), events.spans.end(), is_stage);
  const auto second = std::find_if(first + 1, events.spans.end(), is_stage);
  first->end_ns = second->start_ns + 1;
  EXPECT_EQ(noticed_by(verify(seal(events))), Ids{"I6"});
}

/// The same trace once more, by another process, at another time: every correlation is used twice.
TraceEvents with_second_process(const TraceEvents& one) {
  constexpr std::int64_t kLaterNs = 910'000'000;
  TraceEvents both = one;
  for (ApiCall call : one.api_calls) {
    call.process += 1;
    call.thread += 1'000'000;
    call.start_ns += kLaterNs;
    call.end_ns += kLaterNs;
    both.api_calls.push_back(call);
  }
  for (DeviceOperation operation : one.operations) {
    operation.process += 1;
    operation.device = 1;
    operation.start_ns += kLaterNs;
    operation.end_ns += kLaterNs;
    both.operations.push_back(operation);
  }
  both.session.window_end_ns += kLaterNs;
  return both;
}

TEST(Mutations, CorrelationsThatAnotherProcessUsesTooAreNotMixedUp) {
  const TraceEvents one = sealed_events(kShape);
  const Trace trace = seal(with_second_process(one));
  for (const DeviceOperation& operation : trace.events().operations) {
    const ApiCall& call = trace.events().api_calls.at(static_cast<std::size_t>(operation.api_row));
    EXPECT_EQ(call.process, operation.process);
    EXPECT_LT(operation.start_ns - call.start_ns, 1'000'000);
  }
  EXPECT_EQ(noticed_by(verify(trace)), Ids{});
}

TEST(Mutations, AnOperationThatNamesAnotherProcessHasNoLaunch) {
  TraceEvents events = sealed_events(kShape);
  events.operations[operation_of_step(events, 2, 5)].process += 1;
  const TraceQuality quality = verify(seal(events));
  EXPECT_EQ(noticed_by(quality), Ids{"I3"});
  EXPECT_NE(check_of(quality, "I3").evidence.find("no launch in its process"), std::string::npos);
}

}  // namespace
}  // namespace decodelab
