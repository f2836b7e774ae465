// Every planned row has a summary, and numbers stand in it only where the rules allow them.
#include "reports/statistics/summary.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::sample_run;
using testing::SampleOptions;

SampleOptions one_cell() {
  SampleOptions options;
  options.phases = {Phase::decode};
  options.batches = {4};
  options.lengths = {512};
  options.arms = {{"causal"}, {"bigcode", 0.7}};
  options.with_failures = false;
  return options;
}

bool has_flag(const SummaryRow& row, const std::string& flag) {
  return std::find(row.flags.begin(), row.flags.end(), flag) != row.flags.end();
}

TEST(Summary, HasARowForEveryCellAndArm) {
  const RunData data = sample_run();
  const RunSummary summary = summarize(data);
  ASSERT_EQ(summary.rows.size(), data.cells.size() * data.arms.size());
  EXPECT_EQ(summary.baseline(), "causal");
  for (const SummaryRow& row : summary.rows) {
    EXPECT_EQ(row.blocks > 0, row.status == RowStatus::ok);
    EXPECT_EQ(row.reason.empty(), row.status == RowStatus::ok);
    EXPECT_EQ(row.median_ns.has_value(), row.status == RowStatus::ok);
  }
}

TEST(Summary, PoolsTheStepsOfAllVisits) {
  RunData data = sample_run(one_cell());
  std::vector<std::int64_t> samples;
  for (const BlockRecord& block : data.blocks) {
    for (const VisitRecord& visit : block.visits) {
      if (visit.arm_id == 1) {
        samples.insert(samples.end(), visit.samples_ns.begin(), visit.samples_ns.end());
      }
    }
  }
  const SummaryRow row = summarize(data).rows.at(0);
  EXPECT_EQ(row.launches, 5);
  EXPECT_EQ(row.blocks, 10);
  EXPECT_EQ(row.steps, 320);  // 5 launches x 2 blocks x 2 visits x 16 steps
  EXPECT_EQ(row.warmup, 3);
  EXPECT_EQ(row.min_ns, *std::min_element(samples.begin(), samples.end()));
  EXPECT_EQ(row.max_ns, *std::max_element(samples.begin(), samples.end()));
  std::sort(samples.begin(), samples.end());
  EXPECT_NEAR(static_cast<double>(row.median_ns.value()), static_cast<double>(samples[159] + samples[160]) / 2, 1);
  EXPECT_NEAR(static_cast<double>(row.mean_ns.value()), mean(std::vector<double>(samples.begin(), samples.end())), 1);
  EXPECT_EQ(row.launch_means_ns.size(), 5U);
  EXPECT_LT(row.cell_mean_interval_ns.value().low, row.cell_mean_ns.value());
}

TEST(Summary, FindsTheFactorThatTheSampleWasMadeWith) {
  const SummaryRow row = summarize(sample_run(one_cell())).rows.at(1);
  EXPECT_NEAR(row.time_ratio.value(), 0.7, 0.02);
  EXPECT_LT(row.time_ratio_low.value(), 0.7);
  EXPECT_GT(row.time_ratio_high.value(), 0.7);
  EXPECT_DOUBLE_EQ(row.speedup.value() * row.time_ratio.value(), 1.0);
  EXPECT_GT(row.mde.value(), 0.0);
  EXPECT_EQ(row.decision.verdict, std::nullopt) << "five launches";
  EXPECT_EQ(row.bound_share, std::nullopt);
}

TEST(Summary, ShowsPercentilesOnlyWithEnoughStepsAndLaunches) {
  SampleOptions options = one_cell();
  options.launches = 10;
  options.blocks = 1;
  options.steps = 8;  // 160 steps: enough for p90 and p95
  const SummaryRow enough = summarize(sample_run(options)).rows.at(0);
  EXPECT_TRUE(enough.p90_ns.has_value() && enough.p95_ns.has_value());
  EXPECT_FALSE(enough.p99_ns.has_value());
  EXPECT_LT(enough.p90_ns.value(), enough.p95_ns.value());
  options.steps = 64;  // 1280 steps
  EXPECT_TRUE(summarize(sample_run(options)).rows.at(0).p99_ns.has_value());
  options.launches = 9;
  const SummaryRow few_launches = summarize(sample_run(options)).rows.at(0);
  EXPECT_FALSE(few_launches.p90_ns || few_launches.p95_ns || few_launches.p99_ns);
  options.launches = 10;
  options.steps = 3;  // 60 steps
  EXPECT_FALSE(summarize(sample_run(options)).rows.at(0).p90_ns.has_value());
}

TEST(Summary, LabelsASingleLaunchAndGivesItNoInterval) {
  SampleOptions options = one_cell();
  options.launches = 1;
  const SummaryRow row = summarize(sample_run(options)).rows.at(1);
  EXPECT_TRUE(has_flag(row, "this process only"));
  EXPECT_TRUE(row.time_ratio.has_value());
  EXPECT_FALSE(row.time_ratio_low || row.time_ratio_high || row.mde || row.cell_mean_interval_ns);
}

TEST(Summary, GivesNoRatioToAnArmThatIsNotEngagedOrWrong) {
  RunData data = sample_run(one_cell());
  data.cell_arms[1].engaged = false;
  EXPECT_FALSE(summarize(data).rows.at(1).time_ratio.has_value());
  EXPECT_TRUE(summarize(data).rows.at(1).median_ns.has_value());
  data.cell_arms[1].engaged = std::nullopt;
  EXPECT_TRUE(summarize(data).rows.at(1).time_ratio.has_value());
  data.cell_arms[1].status = RowStatus::incorrect;
  EXPECT_FALSE(summarize(data).rows.at(1).time_ratio.has_value());
}

TEST(Summary, GivesNoRatioWhereTheBaselineFailed) {
  RunData data = sample_run(one_cell());
  data.cell_arms[0].status = RowStatus::failed;
  EXPECT_FALSE(summarize(data).rows.at(0).time_ratio.has_value());
  EXPECT_FALSE(summarize(data).rows.at(1).time_ratio.has_value());
}

TEST(Summary, FlagsRestlessWarmUpAndBrokenPeriodsOnce) {
  SampleOptions options = one_cell();
  options.steps = 12;
  RunData data = sample_run(options);
  data.cell_arms[0].flags = {"period-not-covered"};
  data.blocks[3].visits[0].quiet = false;
  const auto arm = static_cast<std::size_t>(data.blocks[3].visits[0].arm_id - 1);
  const RunSummary summary = summarize(data);
  EXPECT_TRUE(has_flag(summary.rows[arm], "warm-up-not-quiet"));
  EXPECT_FALSE(has_flag(summary.rows[1 - arm], "warm-up-not-quiet"));
  EXPECT_EQ(std::count(summary.rows[0].flags.begin(), summary.rows[0].flags.end(), "period-not-covered"), 1);
}

TEST(Summary, PlotsDecodeAtTheMiddleOfItsVisit) {
  SummaryRow row;
  row.cell.phase = Phase::decode;
  row.cell.length = 512;
  row.cell.steps = 9;
  EXPECT_DOUBLE_EQ(row.plotted_length(), 516.0);
  row.cell.phase = Phase::prefill;
  EXPECT_DOUBLE_EQ(row.plotted_length(), 512.0);
}

TEST(Summary, RefusesARowOfAnUnknownCell) {
  RunData data = sample_run(one_cell());
  data.cell_arms[0].cell_id = 77;
  EXPECT_THROW(summarize(data), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
