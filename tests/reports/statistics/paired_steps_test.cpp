// Steps that ran side by side are compared as pairs, and hiccups of one of them are cut.
#include "reports/statistics/paired_steps.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

using Steps = std::vector<std::int64_t>;

double log_ratio(const Steps& arm, const Steps& baseline) {
  const VisitPair visit{.arm_ns = arm, .baseline_ns = baseline};
  return log_ratio_of_pairs(std::span(&visit, 1)).value();
}

/// Steps of about a millisecond under a mood that lasts for some 30 steps, of which the machine's neighbours lengthen
/// one in ten.
struct Moody {
  explicit Moody(std::uint64_t seed) : random(seed) {}

  std::int64_t step(double factor) {
    std::normal_distribution<double> normal;
    const double hiccup = std::uniform_real_distribution<double>()(random) < 0.1 ? 1.3 : 1.0;
    return std::llround(1e6 * factor * std::exp(mood + 0.01 * normal(random)) * hiccup);
  }
  void pass() { mood = 0.97 * mood + 0.02 * std::normal_distribution<double>()(random); }

  std::mt19937_64 random;
  double mood = 0;
};

struct Visits {
  /// `steps` of two arms side by side; the arm's take `factor` of the baseline's time.
  Visits(Moody& machine, int steps, double factor) {
    for (int i = 0; i < steps; ++i) {
      arm.push_back(machine.step(factor));
      baseline.push_back(machine.step(1));
      machine.pass();
    }
  }

  Steps arm;
  Steps baseline;
};

TEST(PairedSteps, AgreeWithNumPy) {
  // log_ratio_of_pairs([arm], [baseline]) of tools/validation/validation/statistics_values.py, of the same numbers
  Steps arm;
  Steps baseline;
  for (std::int64_t i = 0; i < 40; ++i) {
    arm.push_back(1000 + 37 * (i * i % 101));
    baseline.push_back(1000 + 41 * (i * i * i % 97));
  }
  EXPECT_NEAR(log_ratio(arm, baseline), 0.009652584598008973, 1e-12);
  arm.clear();
  baseline.clear();
  for (std::int64_t i = 0; i < 48; ++i) {
    const std::int64_t disturbed = 150 * (i / 6 % 2);
    arm.push_back(1000 + i * i % 13 + disturbed * (7 * i % 11));
    baseline.push_back(1000 + 3 * i % 7 + disturbed * (5 * i % 11));
  }
  EXPECT_NEAR(log_ratio(arm, baseline), 0.008493989638309614, 1e-12);
}

TEST(PairedSteps, CountACostOfEveryEighthStepInFullAndAHiccupNotAtAll) {
  Steps arm(64, 1000);
  Steps baseline(64, 1000);
  for (std::size_t i = 7; i < arm.size(); i += 8) {
    arm[i] = 9000;
  }
  EXPECT_DOUBLE_EQ(log_ratio(arm, baseline), std::log(2));
  arm[0] = 1'000'000'000;
  baseline[1] = 1'000'000'000;
  EXPECT_DOUBLE_EQ(log_ratio(arm, baseline), std::log(2));
}

TEST(PairedSteps, CountACostOfEverySixteenthStepInFull) {
  Steps arm(64, 1000);
  const Steps baseline(64, 1000);
  for (std::size_t i = 7; i < arm.size(); i += 16) {
    arm[i] = 9000;
  }
  EXPECT_DOUBLE_EQ(log_ratio(arm, baseline), std::log(1.5));
}

TEST(PairedSteps, CountStepsThatGrowLongerOverAVisitFromItsStartToItsEnd) {
  Steps arm;
  Steps baseline;
  for (std::int64_t i = 0; i < 64; ++i) {
    arm.push_back(10'000 + 100 * i);
    baseline.push_back(10'000 + 10 * i);
  }
  // (10000 + 100 * 31.5) / (10000 + 10 * 31.5); the start alone has 1, the end 1.53.
  EXPECT_NEAR(log_ratio(arm, baseline), std::log(1.2749), 0.01);
}

TEST(PairedSteps, ChangeTheirSignAloneWhenTheArmsAreSwapped) {
  Moody machine(3);
  const auto [arm, baseline] = Visits(machine, 61, 1.5);
  EXPECT_DOUBLE_EQ(log_ratio(arm, baseline), -log_ratio(baseline, arm));
}

TEST(PairedSteps, LeaveOutStepsWithoutAPartnerAndPoolFewSteps) {
  EXPECT_DOUBLE_EQ(log_ratio({20, 20, 20, 7}, {10, 10, 10}), std::log(2));
  // Of five pairs the outer one at each end is cut.
  EXPECT_DOUBLE_EQ(log_ratio({10, 12, 14, 500, 1}, {10, 10, 10, 10, 10}), std::log(1.2));
  EXPECT_FALSE(log_ratio_of_pairs({}));
  const VisitPair empty{};
  EXPECT_FALSE(log_ratio_of_pairs(std::span(&empty, 1)));
  const Steps zero{0, 0};
  const VisitPair of_zeros{.arm_ns = zero, .baseline_ns = zero};
  EXPECT_FALSE(log_ratio_of_pairs(std::span(&of_zeros, 1)));
}

TEST(PairedSteps, SpreadLittleBesideAProcessThatComesAndGoes) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> ratios;
  for (int block = 0; block < 100; ++block) {
    Steps arm;
    Steps baseline;
    // Of 16 pairs 7 run beside it, and each of their steps takes up to twice as long.
    const int begin = static_cast<int>(random() % 16);
    for (int i = 0; i < 96; ++i) {
      const double share = (i + begin) % 16 < 7 ? 1 : 0;
      const auto step = [&](double factor) {
        const double delay = share * std::uniform_real_distribution<double>()(random);
        return std::llround(1e6 * factor * (1 + delay + 0.01 * normal(random)));
      };
      arm.push_back(step(1.02));
      baseline.push_back(step(1));
    }
    ratios.push_back(log_ratio(arm, baseline));
  }
  EXPECT_NEAR(mean(ratios), std::log(1.02), 0.002);
  // Cut by their differences alone they spread by .026.
  EXPECT_LT(standard_deviation(ratios), 0.005);
}

TEST(PairedSteps, SpreadLessThanTrimmedVisitsUnderMoods) {
  Moody machine(11);
  std::vector<double> paired;
  std::vector<double> of_visits;
  for (int block = 0; block < 200; ++block) {
    const auto [arm, baseline] = Visits(machine, 64, 1.01);
    paired.push_back(log_ratio(arm, baseline));
    of_visits.push_back(std::log(visit_statistic(arm) / visit_statistic(baseline)));
  }
  EXPECT_NEAR(mean(paired), std::log(1.01), 0.001);
  EXPECT_LT(standard_deviation(paired), 0.8 * standard_deviation(of_visits));
}

}  // namespace
}  // namespace decodelab
