// A run is decided as one family, with a composite for each arm.
#include "reports/statistics/family.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

SampleOptions two_arms(std::int64_t launches) {
  SampleOptions options;
  options.batches = {1, 4};
  options.lengths = {64, 128};
  options.arms = {{"causal"}, {"bigcode", 0.7}};
  options.launches = launches;
  options.with_failures = false;
  return options;
}

TEST(Family, GivesEveryContrastAndTheCompositeAVerdict) {
  const RunSummary summary = summarize(sample_run(two_arms(10)));
  int verdicts = 0;
  for (const SummaryRow& row : summary.rows) {
    if (row.arm.baseline) {
      EXPECT_EQ(row.decision.verdict, std::nullopt);
      continue;
    }
    ++verdicts;
    EXPECT_EQ(row.decision.verdict, Verdict::faster);
    EXPECT_EQ(row.mde, row.decision.mde) << "what the rule of the verdict can find, not what a lone test could";
  }
  EXPECT_EQ(verdicts, 8);
  ASSERT_EQ(summary.composites.size(), 1U);
  const Composite& composite = summary.composites.front();
  EXPECT_EQ(composite.cells, 8);
  EXPECT_NEAR(composite.time_ratio, 0.7, 0.01);
  EXPECT_EQ(composite.decision.verdict, Verdict::faster);
}

TEST(Family, WeighsPhasesThenBatchesThenLengths) {
  RunData data = sample_run(two_arms(10));
  RunSummary summary = summarize(data);
  double expected = 0;
  for (const SummaryRow& row : summary.rows) {
    if (!row.arm.baseline) {
      expected += std::log(*row.time_ratio) / 8;
    }
  }
  EXPECT_NEAR(std::log(summary.composites.front().time_ratio), expected, 1e-12)
      << "a full grid weighs all cells the same";

  // Without one prefill cell the other lengths of its batch weigh more, the phases the same.
  const std::int64_t gone = data.cells.front().id;
  std::erase_if(data.cell_arms, [&](const CellArmRecord& row) { return row.cell_id == gone; });
  std::erase_if(data.blocks, [&](const BlockRecord& block) { return block.cell_id == gone; });
  summary = summarize(data);
  expected = 0;
  for (const SummaryRow& row : summary.rows) {
    if (row.arm.baseline) {
      continue;
    }
    const bool lone = row.cell.phase == data.cells.front().phase && row.cell.batch == data.cells.front().batch;
    expected += std::log(*row.time_ratio) * (lone ? 1.0 / 4 : 1.0 / 8);
  }
  EXPECT_NEAR(std::log(summary.composites.front().time_ratio), expected, 1e-12);
}

TEST(Family, HasNoVerdictBelowTenLaunches) {
  const RunSummary summary = summarize(sample_run(two_arms(9)));
  EXPECT_EQ(summary.rows[1].decision.verdict, std::nullopt);
  EXPECT_TRUE(contains(summary.rows[1].decision.reason, {"9 launches", "9 contrasts needs 10"}));
}

TEST(Family, HasNoVerdictWhileTheRunGoesOn) {
  RunData data = sample_run(two_arms(10));
  data.run.ended_unix_ns = 0;
  const RunSummary summary = summarize(data);
  EXPECT_EQ(summary.rows[1].decision.verdict, std::nullopt);
  EXPECT_EQ(summary.rows[1].decision.reason, "the run is not finished");
}

TEST(Family, LeavesVoidBlocksOutUnlessTheyAreTooManyAndHasNoVerdictWhereNoCoreIsLeft) {
  RunData data = sample_run(two_arms(12));
  const std::int64_t cell = data.cells.front().id;
  const auto disturb = [&](std::size_t count) {
    for (BlockRecord& block : data.blocks) {
      if (block.cell_id != cell || count == 0) {
        continue;
      }
      block.other_cpu_share = 0.5;
      --count;
    }
  };
  disturb(3);
  const SummaryRow few = summarize(data).rows[1];
  EXPECT_EQ(few.comparison.blocks.size(), 21U);
  EXPECT_TRUE(few.decision.verdict.has_value()) << few.decision.reason;
  EXPECT_EQ(few.flags, std::vector<std::string>{kVoidBlocksFlag});
  for (BlockRecord& block : data.blocks) {
    block.other_cpu_share = block.cell_id == cell && block.launch == 1 ? 0.03 : 0;
  }
  const SummaryRow alone = summarize(data).rows[1];
  EXPECT_EQ(alone.comparison.blocks.size(), 24U) << "a launch keeps its blocks where none is quiet";
  EXPECT_EQ(alone.flags, std::vector<std::string>{kDisturbedFlag});
  disturb(8);
  const SummaryRow noisy = summarize(data).rows[1];
  EXPECT_EQ(noisy.comparison.blocks.size(), 24U);
  EXPECT_EQ(noisy.flags, std::vector<std::string>{kDisturbedFlag});
  EXPECT_TRUE(noisy.decision.verdict.has_value()) << "a load that leaves a core widens intervals, and forbids nothing";
  disturb(24);
  const SummaryRow saturated = summarize(data).rows[1];
  EXPECT_EQ(saturated.decision.verdict, std::nullopt);
  EXPECT_TRUE(contains(saturated.decision.reason, {"other processes"}));
  EXPECT_EQ(saturated.flags, std::vector<std::string>{kSaturatedFlag});
}

}  // namespace
}  // namespace decodelab
