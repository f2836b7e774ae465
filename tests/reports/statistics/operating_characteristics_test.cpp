// What a gate finds at 0, half its margin, its margin and twice its margin is what its rule must find.
#include "tests/reports/statistics/operating_characteristics.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr double kMargin = 0.03;

GatePolicy one_look(std::size_t gate_blocks) {
  GatePolicy policy;
  policy.looks.looks = {gate_blocks};
  policy.fresh_blocks = 0;
  return policy;
}

TEST(OperatingCharacteristics, OfOneLookAreThoseOfTheNoncentralT) {
  const auto points = operating_characteristics(
      {.block_sd = 0.02, .margin = kMargin, .cells = 1, .gates = 4000, .seed = 3}, one_look(6));
  ASSERT_EQ(points.size(), 4U);
  // PASS: scipy.stats.nct.cdf(-t.ppf(.982, 5), 5, (effect - log(1.03)) / (log(1.02) / sqrt(6)))
  const double passes[] = {0.76469, 0.25388, 0.01800, 0.00000};
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(points[i].pass, passes[i], 0.024) << i << ": 3 standard errors of a half";
    EXPECT_NEAR(points[i].pass + points[i].fail + points[i].inconclusive, 1, 1e-9);
    EXPECT_DOUBLE_EQ(points[i].gate_blocks, 6);
  }
  EXPECT_EQ(points[1].effect, kMargin / 2);
}

TEST(OperatingCharacteristics, FailNoneMoreOftenThanTheLooksPromiseAndTwentyTimesMoreSeldomWithFreshBlocks) {
  GatePolicy looks_alone;
  looks_alone.fresh_blocks = 0;
  // Noise of five margins: nothing but the tests stands between it and a FAIL.
  const SimulatedGates gates{.block_sd = 0.15, .margin = kMargin, .cells = 1, .gates = 400, .seed = 6};
  EXPECT_LE(operating_characteristics(gates, looks_alone)[0].fail, 0.072) << ".05 and 2 standard errors";
  EXPECT_LE(operating_characteristics(gates, {})[0].fail, 0.01) << ".0025 and 3 standard errors";
}

TEST(OperatingCharacteristics, NeverPassASlowDownOfTheMarginNorFailNoneMoreOftenThanPromised) {
  for (const double sd : {0.005, 0.02, 0.05}) {
    const auto points =
        operating_characteristics({.block_sd = sd, .margin = kMargin, .cells = 1, .gates = 600, .seed = 5}, {});
    EXPECT_LE(points[0].fail, 0.01) << sd;
    EXPECT_LE(points[2].pass, 0.065) << sd;
    EXPECT_LE(points[3].pass, 0.005) << sd;
  }
}

TEST(OperatingCharacteristics, OfACalmMachineDecideAlmostAlwaysAndRight) {
  const auto points =
      operating_characteristics({.block_sd = 0.005, .margin = kMargin, .cells = 1, .gates = 600, .seed = 7}, {});
  EXPECT_GE(points[0].pass, 0.99);
  EXPECT_GE(points[1].pass, 0.95);
  EXPECT_GE(points[3].fail, 0.99);
  EXPECT_LE(points[0].gate_blocks, 6.1);
}

TEST(OperatingCharacteristics, OfANoisyMachineAreInconclusiveRatherThanWrong) {
  const auto points =
      operating_characteristics({.block_sd = 0.15, .margin = kMargin, .cells = 1, .gates = 400, .seed = 9}, {});
  EXPECT_GE(points[0].inconclusive, 0.75);
  EXPECT_GE(points[0].gate_blocks, 20);
}

TEST(OperatingCharacteristics, FindASlowDownAmongManyCellsThoughLessOften) {
  const auto one =
      operating_characteristics({.block_sd = 0.02, .margin = kMargin, .cells = 1, .gates = 150, .seed = 11}, {});
  const auto eight =
      operating_characteristics({.block_sd = 0.02, .margin = kMargin, .cells = 8, .gates = 150, .seed = 11}, {});
  EXPECT_LE(eight[0].fail, 0.055);
  EXPECT_GE(eight[3].fail, 0.9);
  EXPECT_GT(eight[0].gate_blocks, one[0].gate_blocks) << "all of them must end below the margin";
}

TEST(OperatingCharacteristics, AreTheSameWheneverTheyAreAskedFor) {
  const SimulatedGates gates{.block_sd = 0.02, .margin = kMargin, .cells = 1, .gates = 50, .seed = 2};
  EXPECT_EQ(operating_characteristics(gates, {})[1].pass, operating_characteristics(gates, {})[1].pass);
}

}  // namespace
}  // namespace decodelab
