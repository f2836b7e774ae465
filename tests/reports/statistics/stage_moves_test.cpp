// What moved between two traces: rows that add up, and a reason where the traces say nothing.
#include "reports/statistics/stage_moves.h"

#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"
#include "tests/reports/sample_trace.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_trace;

RunData traced(double attention, double head) {
  RunData data = testing::sample_run({.phases = {Phase::decode},
                                      .batches = {1},
                                      .lengths = {64},
                                      .arms = {{"causal"}, {"bigcode"}},
                                      .launches = 1,
                                      .with_failures = false});
  data.traces = {sample_trace(1, 1), sample_trace(1, 2, attention, head)};
  return data;
}

StageMoves moves_in(const RunData& data) {
  return stage_moves({&data, data.cells.data(), data.arms.data()}, {&data, data.cells.data(), data.arms.data() + 1})
      .value();
}

TEST(StageMoves, AddUpToTheWholeDifferenceAndBeginWithTheLargest) {
  const StageMoves moves = moves_in(traced(0.5, 1.25));
  ASSERT_EQ(moves.stages.size(), 5U);
  EXPECT_EQ(moves.stages[0].name, "attention");
  EXPECT_NEAR(moves.stages[0].moved_ns(), -32e6 / 16, 1e-6);
  EXPECT_EQ(moves.stages[1].name, "head");
  EXPECT_NEAR(moves.stages[1].moved_ns(), 4e6 / 16, 1e-6);
  EXPECT_EQ(moves.stages.back().name, kResidualRow);
  double sum = 0;
  for (const StageMove& stage : moves.stages) {
    sum += stage.moved_ns();
  }
  EXPECT_NEAR(sum, moves.step.moved_ns(), 1e-6);
  EXPECT_TRUE(contains(stage_moves_sentence(moves),
                       {"causal and bigcode", "a step -1750.0 us", "attention -2000.0 us", "head +250.0 us"}));
}

TEST(StageMoves, PutWhatNoStageHasIntoTheResidual) {
  RunData data = traced(1, 1);
  data.traces[1].steps_ns += 1'600'000;  // an account that does not add up still does here
  const StageMoves moves = moves_in(data);
  EXPECT_NEAR(moves.stages.back().moved_ns(), 1e5, 1e-6);
  EXPECT_NEAR(moves.step.moved_ns(), 1e5, 1e-6);
}

TEST(StageMoves, CountAStepOnceHoweverManyWereTraced) {
  RunData data = traced(1, 1);
  TraceRecord& trace = data.traces[1];
  trace.steps *= 2;
  trace.steps_ns *= 2;
  for (TraceShareRecord& share : trace.shares) {
    share.host_ns *= 2;
  }
  for (const StageMove& stage : moves_in(data).stages) {
    EXPECT_NEAR(stage.moved_ns(), 0, 1e-6) << stage.name;
  }
}

TEST(StageMoves, ShowAStageThatOneSideAloneHas) {
  RunData data = traced(1, 1);
  data.traces[1].shares.push_back({.kind = "stage", .name = "details", .host_ns = 16'000});
  data.traces[1].steps_ns += 16'000;
  const StageMoves moves = moves_in(data);
  EXPECT_EQ(moves.stages[0].name, "details");
  EXPECT_EQ(moves.stages[0].baseline_ns, 0);
  EXPECT_NEAR(moves.stages[0].candidate_ns, 1000, 1e-9);
}

TEST(StageMoves, KeepGapsOutOfTheSum) {
  RunData data = traced(1, 1);
  data.traces[0].shares.push_back({.kind = "gap", .name = "sync", .device_ns = 32'000});
  data.traces[1].shares.push_back({.kind = "gap", .name = "sync", .device_ns = 16'000});
  const StageMoves moves = moves_in(data);
  ASSERT_EQ(moves.gaps.size(), 1U);
  EXPECT_NEAR(moves.gaps[0].moved_ns(), -1000, 1e-9);
  EXPECT_EQ(moves.stages.size(), 5U);
}

TEST(StageMoves, GiveAReasonInsteadOfNumbersOfATraceThatCannotBeBelieved) {
  for (const char* verdict : {"broken", "contaminated", "untraced"}) {
    RunData data = traced(0.5, 1);
    data.traces[1].verdict = verdict;
    data.traces[1].reason = "3 of 16 replays recorded";
    const StageMoves moves = moves_in(data);
    EXPECT_TRUE(moves.stages.empty());
    EXPECT_TRUE(contains(stage_moves_sentence(moves), {"not known", "bigcode", verdict, "3 of 16"}));
  }
  RunData data = traced(0.5, 1);
  data.traces[0].tier = 2;
  EXPECT_TRUE(contains(moves_in(data).refusal, {"tier 2", "tier 1"}));
  data = traced(0.5, 1);
  data.traces[0].steps = 0;
  EXPECT_TRUE(contains(moves_in(data).refusal, {"covers no step"}));
}

TEST(StageMoves, WarnWhereTracingItselfTookTime) {
  RunData data = traced(0.5, 1);
  data.traces[1].perturbation = 1.09;
  ASSERT_EQ(moves_in(data).warnings.size(), 1U);
  EXPECT_TRUE(contains(moves_in(data).warnings[0], {"bigcode", "9.0 %"}));
}

TEST(StageMoves, AreNoneWhereOneSideHasNoTrace) {
  RunData data = traced(0.5, 1);
  data.traces.pop_back();
  EXPECT_FALSE(
      stage_moves({&data, data.cells.data(), data.arms.data()}, {&data, data.cells.data(), data.arms.data() + 1})
          .has_value());
}

}  // namespace
}  // namespace decodelab
