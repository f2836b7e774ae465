// p values equal those of SciPy, and families err as often as they may.
#include "reports/statistics/sign_flip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::Noise;

const std::vector<double> kLaunches{-0.012, 0.004, -0.021, -0.009, -0.015, 0.002, -0.018, -0.007};
const std::vector<double> kClear{0.03, 0.01, -0.005, 0.022, 0.017, 0.009, 0.028, 0.013};
const std::vector<double> kNothing{0.001, -0.002, 0.003, -0.001, 0.002, -0.003, 0.001, -0.001};

TEST(SignFlip, AgreesWithScipyAndWithABruteForceMaxT) {
  const FamilyTest test = test_family({kLaunches, kClear, kNothing});
  // scipy.stats.permutation_test((d,), mean, permutation_type='samples', n_resamples=inf).pvalue
  EXPECT_DOUBLE_EQ(test.p[0], 0.03125);
  EXPECT_DOUBLE_EQ(test.p[1], 0.015625);
  EXPECT_DOUBLE_EQ(test.p[2], 1);
  // numpy over itertools.product([1, -1], repeat=8)
  EXPECT_DOUBLE_EQ(test.p_adjusted[0], 0.09375);
  EXPECT_DOUBLE_EQ(test.p_adjusted[1], 0.0390625);
  EXPECT_DOUBLE_EQ(test.p_adjusted[2], 1);
  EXPECT_NEAR(test.critical_t, 3.40150672, 1e-6);
}

TEST(SignFlip, EnumeratesUpToTwelveLaunchesAndDrawsAbove) {
  EXPECT_EQ(sign_patterns(5).size(), 32U);
  EXPECT_EQ(sign_patterns(12).size(), 4096U);
  const std::vector<std::uint64_t> drawn = sign_patterns(13);
  EXPECT_EQ(drawn.size(), kSignDraws);
  EXPECT_EQ(drawn, sign_patterns(13)) << "a decision made again is the same";
  EXPECT_EQ(drawn.front(), 0U);
  EXPECT_TRUE(std::ranges::all_of(drawn, [](std::uint64_t pattern) { return pattern < (1U << 13); }));
  EXPECT_THROW(sign_patterns(65), std::invalid_argument);
}

TEST(SignFlip, DrawnPatternsComeCloseToAllOfThem) {
  std::vector<double> values;
  Noise noise(3);
  for (int i = 0; i < 13; ++i) {
    values.push_back(0.4 + noise());
  }
  std::size_t beyond = 0;
  for (std::uint64_t pattern = 0; pattern < (1U << 13); ++pattern) {
    beyond += flipped_t(values, pattern) >= flipped_t(values, 0);
  }
  EXPECT_NEAR(test_family({values}).p[0], static_cast<double>(beyond) / (1U << 13), 0.005);
}

TEST(SignFlip, LeavesOutLaunchesWithoutAValue) {
  std::vector<double> with_gap = kLaunches;
  with_gap.insert(with_gap.begin() + 3, kMissing);
  EXPECT_DOUBLE_EQ(test_family({with_gap}).p[0], test_family({kLaunches}).p[0]);
}

TEST(SignFlip, KnowsDegenerateContrasts) {
  EXPECT_EQ(flipped_t(std::vector<double>{}, 0), 0);
  EXPECT_EQ(flipped_t(std::vector<double>{1}, 0), 0);
  EXPECT_EQ(flipped_t(std::vector<double>{0, 0, 0}, 0), 0);
  EXPECT_TRUE(std::isinf(flipped_t(std::vector<double>{2, 2, 2}, 0)));
  EXPECT_TRUE(test_family({}).p.empty());
  EXPECT_TRUE(std::isinf(test_family({{1, 2, 3}}).critical_t)) << "2 of 8 patterns are more than 5 %";
  EXPECT_THROW(test_family({{1, 2}, {1}}), std::invalid_argument);
}

TEST(SignFlip, AFamilyOfCorrelatedContrastsErrsInAtMostOneOfTwentyRuns) {
  constexpr int kRuns = 2000;
  constexpr std::size_t kContrasts = 12;
  constexpr std::size_t kLaunchesOfARun = 10;
  Noise noise(7);
  int alarms = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<double>> family(kContrasts, std::vector<double>(kLaunchesOfARun));
    for (std::size_t launch = 0; launch < kLaunchesOfARun; ++launch) {
      const double shared = noise();  // what a launch does to all its cells
      for (auto& contrast : family) {
        contrast[launch] = shared + noise();
      }
    }
    const FamilyTest test = test_family(family);
    alarms += *std::min_element(test.p_adjusted.begin(), test.p_adjusted.end()) <= kFamilyLevel;
  }
  EXPECT_LE(alarms, 0.055 * kRuns);
  EXPECT_GE(alarms, 0.03 * kRuns) << "a test that never alarms is not at its level";
}

}  // namespace
}  // namespace decodelab
