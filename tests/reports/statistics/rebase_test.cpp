// Ratios against another arm than the planned baseline: paired, decided anew, and refused for an arm that is not there.
#include "reports/statistics/rebase.h"

#include <gtest/gtest.h>

#include "reports/statistics/summary.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;

RunData three_arms() {
  return testing::sample_run({.phases = {Phase::decode},
                              .batches = {1},
                              .lengths = {64, 128},
                              .arms = {{"causal"}, {"bigcode", 0.5}, {"flash", 0.25}, {kRooflineRead, 0.1}},
                              .launches = 10,
                              .with_failures = false});
}

TEST(Rebase, InvertsTheRatioOfThePlannedBaseline) {
  const RunSummary before = summarize(three_arms());
  const RunSummary after = summarize(with_baseline(three_arms(), "bigcode"));
  EXPECT_EQ(after.baseline(), "bigcode");
  ASSERT_EQ(after.rows.size(), before.rows.size());
  EXPECT_NEAR(*after.rows[0].time_ratio, 1 / *before.rows[1].time_ratio, 1e-12);
  EXPECT_EQ(after.rows[1].time_ratio, 1);
  EXPECT_NEAR(*after.rows[2].time_ratio, *before.rows[2].time_ratio / *before.rows[1].time_ratio, 1e-3)
      << "paired in the same blocks, so ratios multiply but for the hiccups, which each pair of arms has its own of";
  EXPECT_EQ(after.rows[0].decision.verdict, Verdict::slower);
  EXPECT_EQ(before.rows[1].decision.verdict, Verdict::faster);
  EXPECT_EQ(after.rows[0].median_ns, before.rows[0].median_ns);
}

TEST(Rebase, ForgetsThatTheRunWasAnAblation) {
  RunData data = three_arms();
  data.run.plan_json = R"({"ablate": "add-one", "max_tokens": 4})";
  EXPECT_EQ(summarize(with_baseline(data, "causal")).ablation, "add-one");
  EXPECT_EQ(summarize(with_baseline(data, "flash")).ablation, "");
}

TEST(Rebase, NamesTheArmsThatThereAre) {
  EXPECT_TRUE(contains(message_of([] { with_baseline(three_arms(), "native"); }),
                       {"--baseline 'native'", "no such arm", "causal, bigcode, flash"}));
  EXPECT_TRUE(
      contains(message_of([] { with_baseline(three_arms(), kRooflineRead); }), {"roofline", "causal, bigcode"}));
}

}  // namespace
}  // namespace decodelab
