// Paired contrasts are averaged per launch, and only launches make an interval.
#include "reports/statistics/comparison.h"

#include <cmath>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr std::int64_t kBaseline = 1;
constexpr std::int64_t kArm = 2;

BlockRecord block_of(std::int64_t launch, std::int64_t block,
                     const std::vector<std::pair<std::int64_t, double>>& visits) {
  BlockRecord record{.launch = launch, .block = block, .cell_id = 1, .visits = {}};
  for (const auto& [arm, ns] : visits) {
    record.visits.push_back({.arm_id = arm, .samples_ns = {std::llround(ns)}});
  }
  return record;
}

Comparison compare(const std::vector<BlockRecord>& blocks) {
  std::vector<const BlockRecord*> pointers;
  for (const BlockRecord& block : blocks) {
    pointers.push_back(&block);
  }
  return compare_arms(pointers, kArm, kBaseline);
}

// A block in which the arm takes exp(d) of the baseline's time, while the machine is `mood` times slower than usual.
BlockRecord with_contrast(std::int64_t launch, std::int64_t block, double d, double mood = 1) {
  const double base = 1e15 * mood;
  return block_of(launch, block,
                  {{kBaseline, base}, {kArm, base * std::exp(d)}, {kArm, base * std::exp(d)}, {kBaseline, base}});
}

TEST(Comparison, AgreesWithScipyOverLaunches) {
  const std::vector<double> d{-0.3110, -0.2984, -0.3352, -0.3219, -0.3093};
  std::vector<BlockRecord> blocks;
  for (std::size_t launch = 0; launch < d.size(); ++launch) {
    // Two blocks whose mean is d, under moods that differ by a factor of three.
    blocks.push_back(with_contrast(static_cast<std::int64_t>(launch), 0, d[launch] + 0.02, 1.0));
    blocks.push_back(with_contrast(static_cast<std::int64_t>(launch), 1, d[launch] - 0.02, 3.0));
  }
  const Comparison result = compare(blocks);
  ASSERT_EQ(result.launch_contrasts.size(), 5U);
  EXPECT_NEAR(result.launch_contrasts[2], -0.3352, 1e-12);
  EXPECT_NEAR(result.time_ratio.value(), std::exp(-0.31516), 1e-12);  // np.exp(d.mean())
  EXPECT_NEAR(result.interval.value().low, std::exp(-0.3324941363906616),
              1e-12);  // t.interval(.95, 4, d.mean(), sem(d))
  EXPECT_NEAR(result.interval.value().high, std::exp(-0.2978258636093384), 1e-12);
  EXPECT_NEAR(result.mde.value(), 0.04603622, 1e-7);  // np.expm1(0.0450079917679602)
  EXPECT_EQ(result.blocks.size(), 10U);
}

TEST(Comparison, TreatsBlocksOfOneLaunchAsOneValue) {
  const Comparison two = compare({with_contrast(0, 0, -0.1), with_contrast(1, 0, -0.2)});
  const Comparison many = compare(
      {with_contrast(0, 0, -0.1), with_contrast(0, 1, -0.1), with_contrast(0, 2, -0.1), with_contrast(1, 0, -0.2)});
  EXPECT_EQ(many.launch_contrasts.size(), 2U);
  EXPECT_NEAR(many.time_ratio.value(), two.time_ratio.value(), 1e-12);
  EXPECT_NEAR(many.interval.value().high, two.interval.value().high, 1e-12);
}

TEST(Comparison, HasNoIntervalForOneLaunch) {
  const Comparison result = compare({with_contrast(3, 0, -0.1), with_contrast(3, 1, -0.3)});
  EXPECT_NEAR(result.time_ratio.value(), std::exp(-0.2), 1e-12);
  EXPECT_FALSE(result.interval);
  EXPECT_FALSE(result.mde);
  EXPECT_FALSE(result.in_run_null);
}

TEST(Comparison, SkipsBlocksInWhichAnArmIsMissing) {
  const Comparison result =
      compare({with_contrast(0, 0, -0.1), block_of(0, 1, {{kBaseline, 5}}), block_of(1, 0, {{kArm, 5}})});
  EXPECT_EQ(result.skipped_blocks, 2);
  EXPECT_EQ(result.blocks.size(), 1U);
  EXPECT_EQ(compare({block_of(0, 0, {{kBaseline, 5}})}).time_ratio, std::nullopt);
}

TEST(Comparison, HasAnInRunNullThatATrueEffectDoesNotMove) {
  // A B B A with A: 100 then 110, B: 50 then 51; e = [(log A2 - log A1) - (log B2 - log B1)] / 2
  const Comparison result = compare({block_of(0, 0, {{kBaseline, 100}, {kArm, 50}, {kArm, 51}, {kBaseline, 110}})});
  EXPECT_NEAR(result.blocks.at(0).in_run_null.value(), (std::log(1.1) - std::log(1.02)) / 2, 1e-12);
  EXPECT_NEAR(compare({with_contrast(0, 0, -0.5)}).blocks.at(0).in_run_null.value(), 0, 1e-12);
  EXPECT_FALSE(compare({block_of(0, 0, {{kBaseline, 100}, {kArm, 50}})}).blocks.at(0).in_run_null);
}

TEST(Comparison, AveragesVisitsPerLaunch) {
  const std::vector<BlockRecord> blocks{block_of(0, 0, {{kArm, 10}, {kArm, 20}}), block_of(0, 1, {{kArm, 30}}),
                                        block_of(2, 0, {{kArm, 5}, {kBaseline, 7}})};
  const std::vector<const BlockRecord*> pointers{&blocks[0], &blocks[1], &blocks[2]};
  EXPECT_EQ(launch_means(pointers, kArm), (std::vector<std::pair<std::int64_t, double>>{{0, 20.0}, {2, 5.0}}));
}

}  // namespace
}  // namespace decodelab
