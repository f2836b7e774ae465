// Tests of the rule that ends warm-up, on made-up step times.
#include "bench/measure/warmup.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr std::int64_t kWarmMillisecond = 1'000'000;

/// Feeds `step_ns(i)` until the rule ends warm-up.
template <typename StepTime>
Warmup run(StepTime step_ns) {
  Warmup warmup;
  while (!warmup.done()) {
    warmup.add(step_ns(warmup.steps()));
  }
  return warmup;
}

TEST(Warmup, IsNotDoneBeforeTheFirstStep) {
  EXPECT_FALSE(Warmup().done());
  EXPECT_FALSE(Warmup().quiet());
}

TEST(Warmup, EndsAfterEightEqualSteps) {
  const Warmup warmup = run([](std::int64_t) { return 10 * kWarmMillisecond; });
  EXPECT_EQ(warmup.steps(), 8);
  EXPECT_EQ(warmup.total_ns(), 80 * kWarmMillisecond);
  EXPECT_TRUE(warmup.quiet());
}

TEST(Warmup, LastsAtLeastTwentyMilliseconds) {
  EXPECT_EQ(run([](std::int64_t) { return kWarmMillisecond; }).steps(), 20);
}

TEST(Warmup, EndsAtItsLimitOfStepsEvenBelowTwentyMilliseconds) {
  const Warmup warmup = run([](std::int64_t) { return kWarmMillisecond / 10; });
  EXPECT_EQ(warmup.steps(), kWarmupMaximumSteps);
  EXPECT_TRUE(warmup.quiet()) << "steady, though short";
}

TEST(Warmup, GoesOnWhileStepsGetFaster) {
  const Warmup warmup =
      run([](std::int64_t i) { return i < 10 ? (20 - i) * kWarmMillisecond : 10 * kWarmMillisecond; });
  EXPECT_EQ(warmup.steps(), 16) << "six steps of 10 ms follow the last slower one";
  EXPECT_TRUE(warmup.quiet());
}

TEST(Warmup, IsNeverQuietWhileStepsKeepFalling) {
  const Warmup warmup = run([](std::int64_t i) { return (200 - 2 * i) * kWarmMillisecond / 10; });
  EXPECT_EQ(warmup.steps(), kWarmupMaximumSteps);
  EXPECT_FALSE(warmup.quiet());
}

TEST(Warmup, GivesUpOnSlowNoisyStepsAfterTwoSeconds) {
  const Warmup warmup = run([](std::int64_t i) { return (200 + 50 * i) * kWarmMillisecond; });
  EXPECT_EQ(warmup.steps(), 8) << "a window of them has run";
  EXPECT_FALSE(warmup.quiet());
}

TEST(Warmup, JudgesByOnePercent) {
  const auto quiet = [](std::int64_t later_ns) {
    Warmup warmup;
    for (int i = 0; i < 8; ++i) {
      warmup.add(i < 4 ? 10'000'000 : later_ns);
    }
    return warmup.quiet();
  };
  EXPECT_TRUE(quiet(10'099'000));
  EXPECT_FALSE(quiet(10'100'000));
  EXPECT_TRUE(quiet(9'901'000));
  EXPECT_FALSE(quiet(9'900'000));
}

TEST(Warmup, IsQuietWhereTheHalvesDifferByNoMoreThanTheirStepsDo) {
  const auto quiet = [](std::int64_t shift_ns) {
    Warmup warmup;
    for (std::int64_t i = 0; i < 8; ++i) {
      constexpr std::int64_t kNoise[] = {0, 40, 900, -30};  // one step that something interrupted
      warmup.add(10'000'000 + 10'000 * kNoise[i % 4] + (i < 4 ? 0 : shift_ns));
    }
    return warmup.quiet();
  };
  EXPECT_TRUE(quiet(790'000)) << "0.4 ms lie between the two middle steps of each half";
  EXPECT_TRUE(quiet(-790'000));
  EXPECT_FALSE(quiet(810'000));
  EXPECT_FALSE(quiet(-810'000));
}

TEST(Warmup, LooksAtTheLastEightStepsOnly) {
  Warmup warmup;
  for (int i = 0; i < 11; ++i) {
    warmup.add(i < 3 ? 400 * kWarmMillisecond : 10 * kWarmMillisecond);
    EXPECT_EQ(warmup.quiet(), i >= 8) << i;  // At i = 8 two slow steps are left: their half is as uneven as it is slow.
  }
}

TEST(Warmup, IsQuietWithACostThatComesEveryEighthStep) {
  for (std::int64_t phase = 0; phase < 8; ++phase) {
    const Warmup warmup = run([phase](std::int64_t i) { return (i % 8 == phase ? 15 : 10) * kWarmMillisecond; });
    EXPECT_EQ(warmup.steps(), 8) << phase;
    EXPECT_TRUE(warmup.quiet()) << phase;
  }
}

TEST(Warmup, NeedsOnlyOneStepOverHalfASecond) {
  const Warmup slow = run([](std::int64_t) { return 501 * kWarmMillisecond; });
  EXPECT_EQ(slow.steps(), 1);
  EXPECT_TRUE(slow.quiet());
  EXPECT_EQ(run([](std::int64_t) { return 500 * kWarmMillisecond; }).steps(), 8);
}

TEST(Warmup, IsNotEndedByASingleSlowStepLaterOn) {
  Warmup warmup;
  warmup.add(10 * kWarmMillisecond);
  warmup.add(900 * kWarmMillisecond);
  EXPECT_FALSE(warmup.done());
}

TEST(Warmup, RefusesANegativeTime) { EXPECT_THROW(Warmup().add(-1), std::invalid_argument); }

}  // namespace
}  // namespace decodelab
