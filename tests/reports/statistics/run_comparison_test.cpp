// Arms of one run are paired, runs are not, and what cannot be compared is said.
#include "reports/statistics/run_comparison.h"

#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;
using testing::sample_run;
using testing::SampleOptions;

RunData run_of(double factor, std::uint64_t seed, const std::string& uuid) {
  SampleOptions options;
  options.batches = {1};
  options.lengths = {64};
  options.arms = {{"causal", factor}, {"bigcode", 0.7 * factor}};
  options.with_failures = false;
  options.seed = seed;
  RunData data = sample_run(options);
  data.run.uuid = uuid;
  return data;
}

TEST(RunComparison, PairsTwoArmsOfOneRun) {
  const RunData data = run_of(1, 1, "a");
  const auto rows = compare_runs({&data, "causal"}, {&data, "bigcode"});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].paired);
  EXPECT_NEAR(*rows[0].time_ratio, 0.7, 0.02);
  EXPECT_EQ(rows[0].launches, 5);
  EXPECT_LT(rows[0].interval->low, 0.7);
}

TEST(RunComparison, MatchesArmsOfTwoRunsByName) {
  const RunData before = run_of(1, 1, "a");
  const RunData after = run_of(1.2, 2, "b");
  const auto rows = compare_runs({&before, ""}, {&after, ""});
  ASSERT_EQ(rows.size(), 4U);
  for (const ComparedCell& row : rows) {
    EXPECT_FALSE(row.paired);
    EXPECT_EQ(row.arm, row.baseline_arm);
    EXPECT_NEAR(*row.time_ratio, 1.2, 0.04);
    EXPECT_LT(row.interval->low, *row.time_ratio);
  }
}

TEST(RunComparison, RefusesWhatHasNothingInCommon) {
  const RunData one = run_of(1, 1, "a");
  RunData other = run_of(1, 1, "b");
  EXPECT_TRUE(contains(message_of([&] { compare_runs({&one, ""}, {&one, ""}); }), {"name two of its arms"}));
  EXPECT_TRUE(
      contains(message_of([&] { compare_runs({&one, "causl"}, {&other, ""}); }), {"'causl'", "causal, bigcode"}));
  for (CellRecord& cell : other.cells) {
    cell.threads = 99;
  }
  EXPECT_TRUE(contains(message_of([&] { compare_runs({&one, ""}, {&other, ""}); }), {"no cell in common", "threads"}));
  for (ArmRecord& arm : other.arms) {
    arm.label += "x";
  }
  EXPECT_TRUE(contains(message_of([&] { compare_runs({&one, ""}, {&other, ""}); }), {"no arm in common"}));
}

TEST(RunComparison, SaysWhichSideHasNoTimes) {
  const RunData one = run_of(1, 1, "a");
  RunData other = run_of(1, 1, "b");
  other.blocks.clear();
  const auto rows = compare_runs({&one, "causal"}, {&other, "causal"});
  EXPECT_EQ(rows[0].time_ratio, std::nullopt);
  EXPECT_EQ(rows[0].reason, "the candidate was not timed here");
}

TEST(RunComparison, WelchsIntervalIsThatOfScipy) {
  const std::vector<double> a{0.1, 0.3, -0.2, 0.15, 0.4};
  const std::vector<double> b{0.05, -0.1, 0.02, -0.3};
  const Interval interval = welch_interval(a, b).value();
  // scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval(.95)
  EXPECT_NEAR(interval.low, -0.07477074648914533, 1e-12);
  EXPECT_NEAR(interval.high, 0.5397707464891452, 1e-12);
  EXPECT_EQ(welch_interval(a, std::vector<double>{1}), std::nullopt);
}

TEST(RunComparison, NamesWhatDiffersBetweenTheRuns) {
  const RunRecord one = run_of(1, 1, "a").run;
  RunRecord other = one;
  EXPECT_TRUE(differences_of(one, other).empty());
  other.machine.cpu = "Another";
  other.build.commit = "fedcba";
  EXPECT_EQ(differences_of(one, other).size(), 2U);
}

}  // namespace
}  // namespace decodelab
