// Tests of the number of timed steps at each edge of its rule.
#include "bench/measure/steps.h"

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

void expect_plan(std::int64_t slowest_step_ns, std::int64_t steps, bool period_covered) {
  const StepsPlan plan = plan_steps(slowest_step_ns);
  EXPECT_EQ(plan.steps, steps) << slowest_step_ns;
  EXPECT_EQ(plan.period_covered, period_covered) << slowest_step_ns;
}

TEST(Steps, OfAFastModelAreAtMostSixtyFour) {
  expect_plan(1, 64, true);
  expect_plan(kMillisecond, 64, true);
}

TEST(Steps, FillAFifthOfASecondInWholePeriods) {
  expect_plan(5 * kMillisecond, 40, true);
  expect_plan(7 * kMillisecond, 32, true);   // 29 fill it.
  expect_plan(20 * kMillisecond, 16, true);  // 10 fill it.
  expect_plan(25 * kMillisecond, 8, true);
  expect_plan(25 * kMillisecond - 1, 16, true);  // 8 fall short by 8 ns.
}

TEST(Steps, AreOnePeriodAsLongAsItFitsInTwoSeconds) {
  expect_plan(100 * kMillisecond, 8, true);
  expect_plan(250 * kMillisecond, 8, true);
}

TEST(Steps, FallToOneWhereAPeriodDoesNotFit) {
  expect_plan(250 * kMillisecond + 1, 1, false);
  expect_plan(std::numeric_limits<std::int64_t>::max(), 1, false);
}

TEST(Steps, AreAsManyAsARunForPercentilesNeedsHoweverLongTheyTake) {
  EXPECT_EQ(tail_steps(10, 2), 17);  // 10 launches of 2 blocks of 2 visits: 680 steps.
  EXPECT_EQ(tail_steps(10, 1), 34);
  EXPECT_EQ(plan_steps(25 * kMillisecond, 17).steps, 24) << "whole periods";
  EXPECT_EQ(plan_steps(kMillisecond, 17).steps, 64) << "never fewer than fill a visit";
  EXPECT_EQ(plan_steps(300 * kMillisecond, 17).steps, 24) << "a period that takes longer than 2 s all the same";
  EXPECT_TRUE(plan_steps(300 * kMillisecond, 17).period_covered);
  EXPECT_EQ(plan_steps(300 * kMillisecond, 1000).steps, kMaximumSteps);
}

TEST(Steps, ThatAreWholeByThemselvesFillAVisitWithoutPeriods) {
  EXPECT_EQ(plan_whole_steps(Phase::batching, 90 * kMillisecond), 3);
  EXPECT_EQ(plan_whole_steps(Phase::batching, 90 * kMillisecond, 17), 17);
  EXPECT_EQ(plan_whole_steps(Phase::continuation, 90 * kMillisecond), 12);
  EXPECT_EQ(plan_whole_steps(Phase::continuation, 3000 * kMillisecond), 1);
  EXPECT_EQ(plan_whole_steps(Phase::continuation, 1), kMaximumSteps);
}

TEST(Steps, OfASliceAreAnOddNumberThatFillsItsTime) {
  EXPECT_EQ(plan_slice(64, 3 * kMillisecond, 25 * kMillisecond, 1), 9);
  EXPECT_EQ(plan_slice(64, 4 * kMillisecond, 25 * kMillisecond, 1), 7);
  EXPECT_EQ(plan_slice(8, 100 * kMillisecond, 25 * kMillisecond, 1), 1);
  EXPECT_EQ(plan_slice(8, 100 * kMillisecond, 25 * kMillisecond, 3), 3) << "more than the one that wakes a process";
  EXPECT_EQ(plan_slice(2, 100 * kMillisecond, 25 * kMillisecond, 3), 2);
  EXPECT_EQ(plan_slice(64, kMillisecond / 10, 25 * kMillisecond, 1), 64) << "a visit that is shorter is whole";
  EXPECT_EQ(plan_slice(64, 3 * kMillisecond, 0, 1), 64) << "no turns were asked for";
}

TEST(Steps, AreRefusedForATimeThatIsNotPositive) {
  EXPECT_THROW(plan_steps(0), std::invalid_argument);
  EXPECT_THROW(plan_steps(-5), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
