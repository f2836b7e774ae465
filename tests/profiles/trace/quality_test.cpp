// Checks that no mutation of rows is about, and what a CPU device can be checked for.
#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "profiles/trace/account.h"
#include "profiles/trace/checks/check.h"
#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

using testing::check_of;
using testing::Ids;
using testing::noticed_by;
using testing::sealed_events;

TraceQuality quality_of(const TraceEvents& events) { return verify(seal(events)); }

TEST(Verify, ListsEveryCheckInOrder) {
  const TraceQuality quality = quality_of(synthetic_trace({}).events);
  Ids ids;
  for (const TraceCheck& check : quality.checks) {
    ids.push_back(check.id);
    EXPECT_FALSE(check.title.empty());
    EXPECT_FALSE(check.evidence.empty()) << check.id;
  }
  EXPECT_EQ(ids, (Ids{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I16", "I17",
                      "I18", "I19"}));
}

TEST(Verify, ATraceOfACpuCanBeOkAndSaysWhatItCouldNotCheck) {
  const TraceQuality quality = quality_of(synthetic_trace({.cpu_only = true}, TraceTier::kernels).events);
  EXPECT_EQ(quality.verdict, TraceVerdict::ok) << quality.reason;
  for (const char* id : {"I1", "I2", "I6", "I9", "I10", "I12", "I16"}) {
    EXPECT_EQ(check_of(quality, id).status, CheckStatus::passed) << id;
  }
  for (const char* id : {"I3", "I4", "I5", "I7", "I8", "I11", "I17", "I18"}) {
    EXPECT_EQ(check_of(quality, id).status, CheckStatus::not_applicable) << id;
    EXPECT_NE(check_of(quality, id).evidence.find("CPU"), std::string::npos) << id;
  }
}

TEST(Verify, ATraceOfADeviceThatRecordedNoOperationIsBrokenNotUntraced) {
  TraceEvents events = synthetic_trace({}).events;
  events.operations.clear();
  events.api_calls.clear();
  events.waits.clear();
  events.session.collectors = {{.name = "cupti", .on = false, .reason = "another subscriber"}};
  const TraceQuality quality = quality_of(events);
  EXPECT_EQ(quality.verdict, TraceVerdict::broken);
  EXPECT_EQ(quality.reason, "I9: 4 of 4 steps have no device operation at all: cupti is off (another subscriber)");
}

TEST(Verify, OnlyATraceWithNothingInItIsUntracedAndSaysWhoWasOff) {
  TraceEvents events;
  events.session.collectors = {{.name = "cupti", .on = false, .reason = "no driver"}, {.name = "spans", .on = true}};
  events.steps = {{.index = 0, .start_ns = 1, .end_ns = 2}};
  const TraceQuality quality = quality_of(events);
  EXPECT_EQ(quality.verdict, TraceVerdict::untraced);
  EXPECT_EQ(quality.reason, "nothing was recorded: cupti is off (no driver)");
  events.session.dropped_records = 1;
  EXPECT_EQ(quality_of(events).verdict, TraceVerdict::broken);
}

TEST(Verify, DroppedRecordsBreakATraceAndUnknownOnesAreAWarning) {
  TraceEvents events = sealed_events({});
  events.session.unknown_records = 2;
  EXPECT_EQ(noticed_by(quality_of(events)), Ids{"I1"});
  EXPECT_EQ(quality_of(events).verdict, TraceVerdict::warn);
  events.session.dropped_records = 3;
  EXPECT_EQ(quality_of(events).verdict, TraceVerdict::broken);
  EXPECT_EQ(quality_of(events).reason,
            "I1: 3 records dropped by the collectors: trace fewer steps, or allow more events");
}

TEST(Verify, RecordsThatLostTheirStampsWhenTheyWereParsedBreakATrace) {
  TraceEvents events = sealed_events({});
  events.session.zero_times = 1;
  EXPECT_EQ(noticed_by(quality_of(events)), Ids{"I2"});
}

TEST(Verify, ADeviceThatWasBusyForLongerThanItWasWatchedIsBroken) {
  TraceEvents events = sealed_events({.steps = 3});
  events.session.window_end_ns = events.session.window_start_ns + 1000;
  for (Step& step : events.steps) {
    step.excluded_reason.clear();
  }
  const TraceQuality quality = quality_of(events);
  EXPECT_EQ(check_of(quality, "I7").status, CheckStatus::failed);
}

TEST(Verify, StepsThatTheWindowCutsAreLeftOutAndNamed) {
  TraceEvents events = sealed_events({.steps = 4});
  events.session.window_start_ns = events.steps[0].start_ns + 1;
  const TraceQuality quality = quality_of(events);
  EXPECT_EQ(noticed_by(quality), Ids{"I10"});
  EXPECT_EQ(quality.verdict, TraceVerdict::ok);
  EXPECT_EQ(check_of(quality, "I10").evidence, "1 of 4 steps left out: step 0: cut by the start of the window");
  EXPECT_EQ(attribute(seal(events), quality).steps.size(), 3U);
  events.session.window_start_ns = events.steps[3].start_ns + 1;
  EXPECT_EQ(quality_of(events).verdict, TraceVerdict::broken);
}

TEST(Verify, AStepThatIsListedTwiceIsBroken) {
  TraceEvents events = sealed_events({.steps = 4});
  events.steps[1].index = 0;
  EXPECT_EQ(check_of(quality_of(events), "I10").status, CheckStatus::failed);
}

TEST(Verify, StepsThatATimerContradictsAreAWarningAndThenBroken) {
  for (const bool cpu_only : {false, true}) {
    TraceEvents events = sealed_events({.cpu_only = cpu_only});
    const auto with_timer = [&](double ratio) {
      for (Step& step : events.steps) {
        step.timer_ns = static_cast<std::int64_t>(ratio * static_cast<double>(step.end_ns - step.start_ns));
      }
      return quality_of(events);
    };
    EXPECT_EQ(with_timer(1.01).verdict, TraceVerdict::ok);
    EXPECT_EQ(with_timer(1.05).verdict, TraceVerdict::warn);
    EXPECT_EQ(noticed_by(with_timer(1.05)), Ids{"I12"});
    EXPECT_EQ(with_timer(0.8).verdict, TraceVerdict::broken);
    EXPECT_EQ(noticed_by(with_timer(0.8)), Ids{"I12"});
  }
}

TEST(Verify, ASlowDownByTracingIsAWarningAndThenContaminates) {
  for (const bool cpu_only : {false, true}) {
    TraceEvents events = sealed_events({.cpu_only = cpu_only});
    events.session.perturbation = {.ratio = 1.03, .low = 1.02, .high = 1.04, .pairs = 20};
    EXPECT_EQ(quality_of(events).verdict, TraceVerdict::ok);
    events.session.perturbation.ratio = 1.08;
    EXPECT_EQ(quality_of(events).verdict, TraceVerdict::warn);
    events.session.perturbation = {.ratio = 1.28, .low = 0.61, .high = 2.67, .pairs = 8};
    EXPECT_EQ(quality_of(events).verdict, TraceVerdict::warn) << "a noisy machine says nothing of the trace";
    events.session.perturbation = {.ratio = 1.3, .low = 1.2, .high = 1.4, .pairs = 20};
    const TraceQuality quality = quality_of(events);
    EXPECT_EQ(quality.verdict, TraceVerdict::contaminated);
    EXPECT_EQ(noticed_by(quality), Ids{"I13"});
    // Kernels may still be ranked; on a CPU there is nothing but the time of the host.
    const Attribution attribution = attribute(seal(events), quality);
    EXPECT_EQ(attribution.believable, !cpu_only);
    EXPECT_EQ(attribution.host_time_believable, cpu_only);
  }
}

TEST(Verify, MoreBytesThanTheDeviceMovesAreAWarning) {
  TraceEvents events = sealed_events({});
  for (HostSpan& span : events.spans) {
    span.expected_bytes = span.stage == Stage::qkv ? 1'000'000'000 : 0;
  }
  const TraceQuality quality = quality_of(events);
  EXPECT_EQ(noticed_by(quality), Ids{"I17"});
  EXPECT_EQ(quality.verdict, TraceVerdict::warn);
}

TEST(Verify, AClockThatSinksOrIsThrottledIsAWarning) {
  TraceEvents sinking = sealed_events({});
  sinking.counters.back().value = 1700;
  EXPECT_EQ(noticed_by(quality_of(sinking)), Ids{"I18"});
  TraceEvents throttled = sealed_events({});
  throttled.counters.push_back(
      {.time_ns = throttled.steps[1].start_ns, .series = throttled.strings.id("throttle_reasons"), .value = 4});
  EXPECT_EQ(noticed_by(quality_of(throttled)), Ids{"I18"});
}

TEST(Verify, ACpuStepThatLacksOperatorsIsAWarningAndOneWithoutSpansBreaks) {
  const SyntheticShape shape{.steps = 5, .cpu_only = true};
  TraceEvents lacking = sealed_events(shape);
  const auto of_step_2 = [](const HostSpan& span) { return span.step == 2; };
  const auto operator_of_step_2 = [&](const HostSpan& span) {
    return of_step_2(span) && span.kind == SpanKind::operator_call;
  };
  lacking.spans.erase(std::find_if(lacking.spans.begin(), lacking.spans.end(), operator_of_step_2));
  EXPECT_EQ(noticed_by(quality_of(lacking)), Ids{"I9"});
  EXPECT_EQ(quality_of(lacking).verdict, TraceVerdict::warn);

  TraceEvents empty = sealed_events(shape);
  std::erase_if(empty.spans, of_step_2);
  EXPECT_EQ(noticed_by(quality_of(empty)), Ids{"I9"});
  EXPECT_EQ(quality_of(empty).verdict, TraceVerdict::broken);
}

TEST(Verify, ACpuStepThatDidMoreThanOthersIsNoSignOfLostRows) {
  TraceEvents events = sealed_events({.steps = 5, .cpu_only = true});
  const auto operator_of_step_2 = [](const HostSpan& span) {
    return span.step == 2 && span.kind == SpanKind::operator_call;
  };
  HostSpan grown = *std::find_if(events.spans.begin(), events.spans.end(), operator_of_step_2);
  grown.end_ns = ++grown.start_ns;
  grown.name = events.strings.id("aten::cat");
  events.spans.push_back(grown);
  const TraceQuality quality = quality_of(events);
  EXPECT_EQ(noticed_by(quality), Ids{});
  EXPECT_NE(check_of(quality, "I9").evidence.find("step 2 has 0 operators less and 1 more"), std::string::npos);
}

TEST(Verify, ConservationIsCheckedAgainstTheAccountItself) {
  const Trace trace = seal(synthetic_trace({}).events);
  const Attribution right = account(trace);
  const auto status_of = [&](const Attribution& wrong) {
    return check_conservation({.trace = trace, .account = wrong, .on_device = true, .times_add_up = true}).status;
  };
  EXPECT_EQ(status_of(right), CheckStatus::passed);
  Attribution busier = right;
  ++busier.steps[1].busy_ns;
  EXPECT_EQ(status_of(busier), CheckStatus::failed);
  Attribution without_gap = right;
  without_gap.gaps.pop_back();
  EXPECT_EQ(status_of(without_gap), CheckStatus::failed);
  Attribution other_stage = right;
  --other_stage.steps[1].host_stage_ns[3];
  EXPECT_EQ(status_of(other_stage), CheckStatus::failed);
  Attribution shared_twice = right;
  shared_twice.shares.push_back({.ns = 1});
  EXPECT_EQ(status_of(shared_twice), CheckStatus::failed);
}

TEST(Verify, StampsThatCannotBeAddedUpAreRefusedWithoutAddingThem) {
  TraceEvents events = sealed_events({});
  events.operations[3].end_ns = std::numeric_limits<std::int64_t>::max();
  const TraceQuality quality = quality_of(events);
  EXPECT_EQ(quality.verdict, TraceVerdict::broken);
  EXPECT_EQ(check_of(quality, "I2").status, CheckStatus::failed);
  EXPECT_EQ(check_of(quality, "I16").status, CheckStatus::not_applicable);
}

/// Any bits at all, as a damaged file might hold them.
class Scrambler {
 public:
  explicit Scrambler(std::uint64_t seed) : random_(seed) {}

  TraceEvents scramble(TraceEvents events) {
    for (int i = 0; i < 8; ++i) {
      change(events.spans, [&](HostSpan& row) {
        pick({&row.start_ns, &row.end_ns, &row.thread, &row.expected_bytes, &row.allocations}) = any();
        row.step = static_cast<std::int32_t>(any());
        row.stage = static_cast<Stage>(any());
      });
      change(events.operations, [&](DeviceOperation& row) {
        pick({&row.start_ns, &row.end_ns, &row.bytes, &row.process}) = any();
        row.correlation = static_cast<std::uint32_t>(any());
        row.name = static_cast<StringId>(any());
        row.graph_id = static_cast<std::uint64_t>(any() % 3);
      });
      change(events.api_calls, [&](ApiCall& row) { pick({&row.start_ns, &row.end_ns, &row.thread}) = any(); });
      change(events.waits, [&](Wait& row) { pick({&row.start_ns, &row.end_ns}) = any(); });
      change(events.overheads, [&](Overhead& row) { pick({&row.start_ns, &row.end_ns}) = any(); });
      change(events.steps, [&](Step& row) {
        pick({&row.start_ns, &row.end_ns, &row.timer_ns, &row.launches, &row.graph_launches}) = any();
      });
      change(events.session.clocks, [&](ClockBracket& row) { pick({&row.before_ns, &row.device_ns}) = any(); });
    }
    pick({&events.session.window_start_ns, &events.session.window_end_ns, &events.session.zero_times}) = any();
    return events;
  }

 private:
  std::int64_t any() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::array<std::int64_t, 6> edges{0, -1, 1, kMost, std::numeric_limits<std::int64_t>::min(), kMost / 2};
    const std::uint64_t bits = random_();
    return bits % 2 == 0 ? edges[bits / 2 % edges.size()] : static_cast<std::int64_t>(random_());
  }
  std::int64_t& pick(std::vector<std::int64_t*> fields) { return *fields[random_() % fields.size()]; }
  template <typename Row, typename Change>
  void change(std::vector<Row>& rows, Change change_row) {
    if (!rows.empty() && random_() % 3 == 0) {
      change_row(rows[random_() % rows.size()]);
    }
  }

  std::mt19937_64 random_;
};

TEST(Verify, ScrambledRowsNeverDoMoreThanBreakATrace) {
  int broken = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const SyntheticShape shape{.steps = 2, .graph = seed % 2 == 0, .cpu_only = seed % 5 == 0, .seed = seed};
    const Trace trace = seal(Scrambler(seed).scramble(synthetic_trace(shape).events));
    const TraceQuality quality = verify(trace);
    const Attribution attribution = attribute(trace, quality);
    EXPECT_NE(attribution.believable, attribution.steps.empty());
    broken += quality.verdict == TraceVerdict::broken ? 1 : 0;
  }
  EXPECT_GT(broken, 1000);
}

}  // namespace
}  // namespace decodelab
