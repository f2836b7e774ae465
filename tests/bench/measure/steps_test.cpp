// Tests of the number of timed steps at each edge of its rule.
#include "bench/measure/steps.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

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

TEST(Steps, AreRefusedForATimeThatIsNotPositive) {
  EXPECT_THROW(plan_steps(0), std::invalid_argument);
  EXPECT_THROW(plan_steps(-5), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
