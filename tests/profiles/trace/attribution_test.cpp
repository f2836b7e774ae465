// The account of a synthetic trace is the one that it was made with.
#include "profiles/trace/attribution.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/profiles/trace/checked.h"

namespace decodelab {
namespace {

using testing::check_of;

std::int64_t sum_from(const auto& values, std::int64_t start) {
  return std::accumulate(values.begin(), values.end(), start);
}

Attribution attribution_of(const Trace& trace) { return attribute(trace, verify(trace)); }

void expect_truth(const SyntheticTrace& synthetic, const Attribution& attribution, bool on_device) {
  ASSERT_TRUE(attribution.believable) << attribution.refusal;
  ASSERT_EQ(attribution.on_device, on_device);
  ASSERT_EQ(attribution.steps.size(), synthetic.truth.size());
  for (std::size_t i = 0; i < synthetic.truth.size(); ++i) {
    const StepAccount& step = attribution.steps[i];
    const SyntheticStep& truth = synthetic.truth[i];
    EXPECT_EQ(step.span_ns, truth.span_ns);
    EXPECT_EQ(step.busy_ns, truth.busy_ns);
    EXPECT_EQ(step.gap_ns, truth.gap_ns);
    EXPECT_EQ(step.host_stage_ns, truth.host_stage_ns);
    EXPECT_EQ(step.residual_ns, truth.residual_ns);
    EXPECT_EQ(step.host_margin_ns, truth.host_margin_ns);
    EXPECT_EQ(step.launch_to_start_ns, truth.launch_to_start_ns);
    EXPECT_EQ(step.launches, truth.launches);
    EXPECT_EQ(step.operators, truth.operators);
  }
}

class EachCause : public ::testing::TestWithParam<GapCause> {};

TEST_P(EachCause, ComesBackAsItWasAssigned) {
  for (const bool graph : {false, true}) {
    const SyntheticTrace synthetic = synthetic_trace({.steps = 8, .graph = graph, .causes = {GetParam()}});
    expect_truth(synthetic, attribution_of(seal(synthetic.events)), true);
    const auto cause = static_cast<std::size_t>(GetParam());
    EXPECT_GT(synthetic.truth.front().gap_ns[cause], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Causes, EachCause,
                         ::testing::Values(GapCause::sync, GapCause::host_after_sync, GapCause::dispatch,
                                           GapCause::launch_latency, GapCause::dependency, GapCause::tool,
                                           GapCause::unknown),
                         [](const auto& cause) {
                           std::string name = kGapCauseNames[static_cast<std::size_t>(cause.param)];
                           std::erase(name, '-');
                           return name;
                         });

TEST(Attribution, OfAThousandRandomTracesIsExactAndAddsUpToTheNanosecond) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const SyntheticShape shape{.layers = 1 + static_cast<int>(seed % 4),
                               .kernels_per_layer = 1 + static_cast<int>(seed % 7),
                               .steps = 1 + static_cast<int>(seed % 5),
                               .graph = seed % 3 == 0,
                               .cpu_only = seed % 5 == 0,
                               .seed = seed};
    const SyntheticTrace synthetic = synthetic_trace(shape);
    const Trace trace = seal(synthetic.events);
    const TraceQuality quality = verify(trace);
    ASSERT_EQ(quality.verdict, TraceVerdict::ok) << seed << ": " << quality.reason;
    const Attribution attribution = attribute(trace, quality);
    expect_truth(synthetic, attribution, !shape.cpu_only);
    std::int64_t steps_ns = 0;
    for (const StepAccount& step : attribution.steps) {
      if (!shape.cpu_only) {
        EXPECT_EQ(sum_from(step.gap_ns, step.busy_ns), step.span_ns);
      }
      EXPECT_EQ(sum_from(step.host_stage_ns, step.residual_ns), step.span_ns);
      steps_ns += step.span_ns;
    }
    std::int64_t shares_ns = 0;
    for (const TimeShare& share : attribution.shares) {
      shares_ns += share.ns;
    }
    EXPECT_EQ(attribution.steps_ns, steps_ns);
    EXPECT_EQ(shares_ns, steps_ns);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "with seed " << seed;
  }
}

TEST(Attribution, OfABrokenTraceIsTheReasonInsteadOfNumbers) {
  TraceEvents events = synthetic_trace({}).events;
  events.session.dropped_records = 3;
  const Attribution attribution = attribution_of(seal(events));
  EXPECT_FALSE(attribution.believable);
  EXPECT_NE(attribution.refusal.find("3 records dropped"), std::string::npos) << attribution.refusal;
  EXPECT_TRUE(attribution.steps.empty());
  EXPECT_TRUE(attribution.shares.empty());
}

TEST(Attribution, OfATraceWithoutStepsIsARefusal) {
  TraceEvents events = synthetic_trace({.cpu_only = true}).events;
  events.steps.clear();
  EXPECT_NE(attribution_of(seal(events)).refusal.find("no step is marked"), std::string::npos);
}

TEST(Attribution, AFullCommandBufferIsNoCost) {
  const SyntheticTrace synthetic = synthetic_trace({.causes = {GapCause::dependency}});
  ASSERT_FALSE(synthetic.events.overheads.empty());
  for (const Overhead& overhead : synthetic.events.overheads) {
    ASSERT_EQ(overhead.kind, OverheadKind::command_buffer_full);
  }
  const Attribution attribution = attribution_of(seal(synthetic.events));
  for (const Gap& gap : attribution.gaps) {
    EXPECT_NE(gap.cause, GapCause::tool);
  }
}

TEST(Attribution, WithoutCallsKnowsOnlyTheGapsInsideOfGraphs) {
  const Trace trace = seal(synthetic_trace({.graph = true}, TraceTier::kernels).events);
  const Attribution attribution = attribution_of(trace);
  ASSERT_TRUE(attribution.believable) << attribution.refusal;
  for (const Gap& gap : attribution.gaps) {
    const bool known = gap.cause == GapCause::edge || gap.cause == GapCause::dependency;
    EXPECT_TRUE(known || gap.cause == GapCause::unknown);
  }
}

TEST(Attribution, SaysWhatTheStepsWereBoundBy) {
  const auto bound_by = [](SyntheticShape shape) {
    shape.layers = 40;
    return attribution_of(seal(synthetic_trace(shape).events)).bound_by;
  };
  EXPECT_EQ(bound_by({.causes = {GapCause::dispatch}}), "dispatch");
  EXPECT_EQ(bound_by({.causes = {GapCause::unknown}}), "launch-latency");
  EXPECT_EQ(bound_by({.kernels_per_layer = 1, .cpu_only = true}), "norm");
  // Long kernels: the host launches in a twentieth of the time that the device needs.
  SyntheticTrace busy = synthetic_trace({.causes = {GapCause::dependency}});
  std::int64_t later_ns = 0;
  for (DeviceOperation& operation : busy.events.operations) {
    constexpr std::int64_t kLongerNs = 100'000;
    operation.start_ns += later_ns;
    operation.end_ns += later_ns += kLongerNs;
  }
  Step& step = busy.events.steps.front();
  busy.events.steps = {Step{.index = step.index, .start_ns = step.start_ns, .end_ns = step.end_ns + later_ns}};
  busy.events.session.window_end_ns += 2 * later_ns;
  busy.events.session.launches_counted = false;
  busy.events.waits.clear();
  const Attribution attribution = attribution_of(seal(busy.events));
  EXPECT_EQ(attribution.bound_by, "kernels") << attribution.refusal;
}

TEST(Attribution, StagesInsideOfAGraphComeFromTheOriginalsOfItsNodes) {
  const SyntheticShape shape{.layers = 2, .kernels_per_layer = 6, .steps = 3, .graph = true};
  const Trace trace = seal(synthetic_trace(shape).events);
  const Attribution attribution = attribution_of(trace);
  for (const StageCost& stage : attribution.stages) {
    if (stage.stage == Stage::qkv || stage.stage == Stage::mlp) {
      EXPECT_EQ(stage.kernels, 2 * 3);
    }
  }
  std::int64_t graph_ns = 0;
  std::int64_t kernel_ns = 0;
  for (const StepAccount& step : attribution.steps) {
    graph_ns += step.graph_kernel_ns;
    kernel_ns += step.kernel_ns;
  }
  EXPECT_GT(graph_ns, 0);
  EXPECT_LT(graph_ns, kernel_ns);  // The embedding is outside.
}

TEST(Attribution, SharesOfBandwidthNeedBytesAndAMeasurement) {
  TraceEvents events = synthetic_trace({}).events;
  const auto share_of_qkv = [](const Trace& trace) {
    const Attribution attribution = attribution_of(trace);
    for (const StageCost& stage : attribution.stages) {
      if (stage.stage == Stage::qkv) {
        return stage.bandwidth_share;
      }
    }
    return std::optional<double>(-1);
  };
  ASSERT_TRUE(share_of_qkv(seal(events)).has_value());
  const double once = *share_of_qkv(seal(events));
  EXPECT_GT(once, 0);
  events.session.devices[0].measured_bytes_per_second /= 2;
  EXPECT_DOUBLE_EQ(*share_of_qkv(seal(events)), 2 * once);
  events.session.devices[0].measured_bytes_per_second = 0;
  EXPECT_FALSE(share_of_qkv(seal(events)).has_value());
}

TEST(Attribution, OperatorsHaveTheirOwnTimeAndThatOfThoseTheyCall) {
  const Trace trace = seal(synthetic_trace({.cpu_only = true}).events);
  const Attribution attribution = attribution_of(trace);
  std::int64_t self_ns = 0;
  for (const OperatorCost& cost : attribution.operators) {
    EXPECT_LE(cost.self_ns, cost.total_ns);
    if (trace.text(cost.name) == "aten::empty") {
      EXPECT_EQ(cost.self_ns, cost.total_ns);
    }
    self_ns += cost.self_ns;
  }
  EXPECT_LT(self_ns, attribution.steps_ns);
  for (std::size_t i = 1; i < attribution.operators.size(); ++i) {
    EXPECT_GE(attribution.operators[i - 1].self_ns, attribution.operators[i].self_ns);
  }
}

}  // namespace
}  // namespace decodelab
