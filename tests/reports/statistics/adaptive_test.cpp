// An adaptive run is decided at its looks and nowhere else.
#include "reports/statistics/adaptive.h"

#include <gtest/gtest.h>

#include "reports/statistics/looks.h"
#include "reports/statistics/summary.h"
#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

RunData adaptive_run(std::int64_t launches, double factor, double launch_noise = 0.002) {
  SampleOptions options;
  options.batches = {1};
  options.lengths = {64, 128};
  options.arms = {{"causal"}, {"bigcode", factor}};
  options.launches = launches;
  options.launch_noise = launch_noise;
  options.step_noise = 0.002;
  options.with_failures = false;
  RunData data = sample_run(options);
  data.run.plan_json = R"({"adaptive": true})";
  return data;
}

TEST(Adaptive, IsSaidByThePlan) {
  EXPECT_TRUE(is_adaptive({.plan_json = R"({"adaptive": true})"}));
  EXPECT_FALSE(is_adaptive({.plan_json = R"({"adaptive": false})"}));
  EXPECT_FALSE(is_adaptive({.plan_json = "{}"}));
  EXPECT_FALSE(is_adaptive({.plan_json = "no JSON"}));
}

TEST(Adaptive, DecidesAtALookAndNotBetween) {
  for (const SummaryRow& row : summarize(adaptive_run(7, 0.9)).rows) {
    EXPECT_EQ(row.decision.verdict, row.arm.baseline ? std::nullopt : std::optional(Verdict::faster));
  }
  for (const SummaryRow& row : summarize(adaptive_run(9, 0.9)).rows) {
    if (row.arm.baseline) {
      continue;
    }
    EXPECT_EQ(row.decision.verdict, std::nullopt);
    EXPECT_TRUE(contains(row.decision.reason, {"9 launches, and the looks are at 7, 11, 17, 25"}));
  }
}

TEST(Adaptive, HasWiderIntervalsThanAFixedNumberOfLaunches) {
  const RunData looked = adaptive_run(11, 0.9);
  RunData fixed = looked;
  fixed.run.plan_json = "{}";
  const RunSummary with_looks = summarize(looked);
  const RunSummary without = summarize(fixed);
  EXPECT_STREQ(with_looks.interval_level(), ">= 90 %");
  EXPECT_STREQ(without.interval_level(), "95 %");
  for (std::size_t i = 0; i < with_looks.rows.size(); ++i) {
    const SummaryRow& a = with_looks.rows[i];
    const SummaryRow& b = without.rows[i];
    if (a.arm.baseline) {
      continue;
    }
    EXPECT_EQ(a.time_ratio, b.time_ratio);
    EXPECT_GT(*a.time_ratio_high - *a.time_ratio_low, *b.time_ratio_high - *b.time_ratio_low);
  }
  EXPECT_GT(with_looks.composites.front().interval->high, without.composites.front().interval->high);
}

TEST(Adaptive, GoesOnWhileOneContrastIsOpen) {
  EXPECT_TRUE(is_decided(adaptive_run(7, 0.9)));
  EXPECT_TRUE(is_decided(adaptive_run(7, 1.0, 0.0005))) << "within 1 % is an answer too";
  EXPECT_FALSE(is_decided(adaptive_run(7, 1.0, 0.05)));
  EXPECT_FALSE(is_decided(adaptive_run(9, 0.9))) << "no look is at 9";
  RunData data = adaptive_run(7, 0.9);
  data.run.ended_unix_ns = 0;
  EXPECT_TRUE(is_decided(data)) << "it is asked while the run goes on";
}

}  // namespace
}  // namespace decodelab
