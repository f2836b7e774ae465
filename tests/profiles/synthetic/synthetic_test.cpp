// The synthetic decode is what it says it is: its account is found by nobody else's code here.
#include "tests/profiles/synthetic/synthetic.h"

#include <numeric>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

std::int64_t sum(const auto& values, std::int64_t start) {
  return std::accumulate(values.begin(), values.end(), start);
}

TEST(SyntheticTrace, TheTruthOfEveryStepAddsUp) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SyntheticTrace trace = synthetic_trace({.steps = 5, .graph = seed % 2 == 0, .seed = seed});
    ASSERT_EQ(trace.truth.size(), 5U);
    for (const SyntheticStep& step : trace.truth) {
      EXPECT_EQ(sum(step.gap_ns, step.busy_ns), step.span_ns);
      EXPECT_EQ(sum(step.host_stage_ns, step.residual_ns), step.span_ns);
    }
  }
}

TEST(SyntheticTrace, HasTheStructureThatWasAskedFor) {
  const SyntheticTrace eager = synthetic_trace({.layers = 3, .kernels_per_layer = 4, .steps = 7});
  // Embedding, the layers' kernels, and the copy of the token.
  EXPECT_EQ(eager.events.operations.size(), 7U * (1 + 3 * 4 + 1));
  EXPECT_EQ(eager.events.steps.size(), 7U);
  EXPECT_EQ(eager.events.steps[2].launches, 1 + 3 * 4 + 1);
  EXPECT_TRUE(eager.events.nodes.empty());
  const SyntheticTrace graph = synthetic_trace({.layers = 3, .kernels_per_layer = 4, .steps = 7, .graph = true});
  EXPECT_EQ(graph.events.operations.size(), eager.events.operations.size());
  EXPECT_EQ(graph.events.steps[2].launches, 2);
  EXPECT_EQ(graph.events.steps[2].graph_launches, 1);
  EXPECT_EQ(graph.events.nodes.size(), 2U * 3 * 4);
}

TEST(SyntheticTrace, OnACpuHasNoRowOfADevice) {
  const SyntheticTrace trace = synthetic_trace({.cpu_only = true});
  EXPECT_TRUE(trace.events.operations.empty());
  EXPECT_TRUE(trace.events.api_calls.empty());
  EXPECT_TRUE(trace.events.session.devices.empty());
  EXPECT_EQ(trace.events.session.device, "cpu");
  EXPECT_GT(trace.truth.front().operators, 10);
}

TEST(SyntheticTrace, DependsOnItsSeedAndNothingElse) {
  const auto starts = [](std::uint64_t seed) {
    std::vector<std::int64_t> times;
    for (const DeviceOperation& row : synthetic_trace({.seed = seed}).events.operations) {
      times.push_back(row.start_ns);
    }
    return times;
  };
  EXPECT_EQ(starts(3), starts(3));
  EXPECT_NE(starts(3), starts(4));
}

TEST(SyntheticTrace, GivesEachCauseOnlyWhereItIsAskedFor) {
  const SyntheticTrace trace = synthetic_trace({.causes = {GapCause::dependency}});
  for (const SyntheticStep& step : trace.truth) {
    EXPECT_GT(step.gap_ns[static_cast<std::size_t>(GapCause::dependency)], 0);
    for (const GapCause cause : {GapCause::sync, GapCause::host_after_sync, GapCause::dispatch,
                                 GapCause::launch_latency, GapCause::tool, GapCause::unknown}) {
      EXPECT_EQ(step.gap_ns[static_cast<std::size_t>(cause)], 0);
    }
  }
}

TEST(SyntheticTrace, RefusesAnEdgeAndAnEmptyDecode) {
  EXPECT_THROW(synthetic_trace({.causes = {GapCause::edge}}), std::invalid_argument);
  EXPECT_THROW(synthetic_trace({.steps = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
