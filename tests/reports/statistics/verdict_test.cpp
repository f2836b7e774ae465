// Each verdict where its rule asks for it, and none where the launches do not suffice.
#include "reports/statistics/verdict.h"

#include <cmath>

#include <gtest/gtest.h>

#include "reports/statistics/estimates.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::Noise;

std::vector<double> spread_around(double center, double spread, std::size_t launches, std::uint64_t seed = 1) {
  Noise noise(seed);
  std::vector<double> values;
  for (std::size_t i = 0; i < launches; ++i) {
    values.push_back(center + spread * noise());
  }
  return values;
}

Decision decide_one(const std::vector<double>& values) { return decide_family({values}).front(); }

TEST(Verdict, IsFasterOrSlowerWhereTheTestsHold) {
  EXPECT_EQ(decide_one(spread_around(-0.2, 0.01, 6)).verdict, Verdict::faster);
  EXPECT_EQ(decide_one(spread_around(0.2, 0.01, 6)).verdict, Verdict::slower);
}

TEST(Verdict, IsSameWhereTheWholeIntervalLiesWithinOnePerCent) {
  const Decision decision = decide_one(spread_around(0, 0.002, 12));
  EXPECT_EQ(decision.verdict, Verdict::same);
  EXPECT_TRUE(decision.reason.empty());
}

TEST(Verdict, IsInconclusiveElseAndSaysHowManyLaunchesAreMissing) {
  const Decision decision = decide_one({0.03, -0.02, 0.05, -0.01, 0.04, -0.03});
  EXPECT_EQ(decision.verdict, Verdict::inconclusive);
  EXPECT_FALSE(decision.reason.empty());
  ASSERT_TRUE(decision.more_launches.has_value());
  EXPECT_GT(*decision.more_launches, 6);
}

TEST(Verdict, NeedsSixLaunchesForOneContrastAndTenForALargeFamily) {
  EXPECT_EQ(decide_one(spread_around(-0.2, 0.01, 5)).verdict, std::nullopt);
  EXPECT_EQ(decide_one(spread_around(-0.2, 0.01, 5)).reason, "5 launches, and a verdict on 1 contrast needs 6");
  const std::vector<std::vector<double>> large(5, spread_around(-0.2, 0.01, 9));
  EXPECT_EQ(decide_family(large).front().verdict, std::nullopt);
  const std::vector<std::vector<double>> enough(5, spread_around(-0.2, 0.01, 10));
  EXPECT_EQ(decide_family(enough).front().verdict, Verdict::faster);
}

TEST(Verdict, OfOneContrastDoesNotWaitForAnotherThatLostALaunch) {
  std::vector<std::vector<double>> family{spread_around(-0.2, 0.01, 6, 1), spread_around(-0.2, 0.01, 6, 2)};
  family.push_back(spread_around(-0.2, 0.001, 6, 3));
  family.back()[2] = kMissing;
  const std::vector<Decision> decisions = decide_family(family);
  EXPECT_EQ(decisions[0].verdict, Verdict::faster);
  EXPECT_EQ(decisions[1].verdict, Verdict::faster);
  EXPECT_EQ(decisions[2].verdict, std::nullopt);
  EXPECT_EQ(decisions[2].reason, "5 launches, and a verdict on 3 contrasts needs 6");
  EXPECT_EQ(decisions[2].p_family, 1);
  EXPECT_EQ(decisions[2].p_sign_flip, 2.0 / 32);
}

TEST(Verdict, IsInconclusiveWhereOneOutlierMakesTheTestsDisagree) {
  // All of one sign: sign flips find 2 / 2^6; Student's t does not, for the spread that one launch brings.
  const Decision decision = decide_one({0.001, 0.001, 0.001, 0.001, 0.001, 0.5});
  EXPECT_LE(decision.p_sign_flip, kFamilyLevel);
  EXPECT_GT(decision.p_t, kFamilyLevel);
  EXPECT_EQ(decision.verdict, Verdict::inconclusive);
  EXPECT_EQ(decision.reason, "Student's t and the sign flips disagree");
}

TEST(Verdict, StudentsPIsThatOfScipy) {
  EXPECT_NEAR(student_t_p(std::vector<double>{-0.012, 0.004, -0.021, -0.009, -0.015, 0.002, -0.018, -0.007}),
              0.019975625618306066, 1e-10);  // scipy.stats.ttest_1samp(d, 0).pvalue
  EXPECT_EQ(student_t_p(std::vector<double>{1}), 1);
  EXPECT_EQ(student_t_p(std::vector<double>{0, 0}), 1);
  EXPECT_EQ(student_t_p(std::vector<double>{1, 1}), 0);
}

TEST(Verdict, DigitsOfADecisionIgnoreTheLastBits) {
  EXPECT_EQ(decision_digits(0.1 + 0.2), decision_digits(0.3));
  EXPECT_NE(decision_digits(0.3), decision_digits(0.3 * (1 + 1e-8)));
  EXPECT_EQ(decision_digits(0), 0);
  EXPECT_TRUE(std::isinf(decision_digits(INFINITY)));
}

// The promise of the column "Detects": an effect of that size is found in four of five runs.
TEST(Verdict, ItsDetectableEffectIsFoundWithEightyPerCentPower) {
  for (const std::size_t contrasts : {std::size_t{1}, std::size_t{6}}) {
    double promised = 0;
    constexpr int kRuns = 400;
    for (int run = 0; run < kRuns; ++run) {
      std::vector<std::vector<double>> family;
      for (std::size_t j = 0; j < contrasts; ++j) {
        family.push_back(spread_around(0, 0.02, 10, static_cast<std::uint64_t>(run) * contrasts + j + 1));
      }
      promised += decide_family(family).front().mde.value() / kRuns;
    }
    int found = 0;
    for (int run = 0; run < kRuns; ++run) {
      std::vector<std::vector<double>> family;
      for (std::size_t j = 0; j < contrasts; ++j) {
        family.push_back(spread_around(j == 0 ? std::log1p(promised) : 0, 0.02, 10,
                                       100'000 + static_cast<std::uint64_t>(run) * contrasts + j));
      }
      found += decide_family(family).front().verdict == Verdict::slower;
    }
    EXPECT_GE(found, 0.8 * kRuns) << contrasts;
  }
}

}  // namespace
}  // namespace decodelab
