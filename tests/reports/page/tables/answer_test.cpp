// The answer of a run and of a comparison says who takes how much less or more time, and what a verdict still needs.
#include "reports/page/tables/answer.h"

#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

SampleOptions answered(std::int64_t launches, double factor) {
  return {.phases = {Phase::prefill, Phase::decode},
          .batches = {1},
          .lengths = {64},
          .arms = {{"causal"}, {"bigcode", factor}},
          .launches = launches,
          .blocks = 1,
          .with_failures = false};
}

std::string answer(const SampleOptions& options) { return answer_of(summarize(sample_run(options))); }

TEST(Answer, SaysTheEffectOverAllCellsAndOfEachPhaseAndTheVerdict) {
  const std::string text = answer(answered(8, 0.8));
  EXPECT_TRUE(text.starts_with("bigcode takes 19.6 % less time than causal (time ratio 0.8036 [0.")) << text;
  EXPECT_TRUE(contains(text, {"2 cells): prefill 19.7 % less, decode 19.6 % less.",
                              "Verdict: FASTER over all cells; of single cells FASTER in 2 of 2."}));
}

TEST(Answer, SaysHowManyLaunchesAVerdictStillNeedsAndHowToMakeThem) {
  const RunSummary summary = summarize(sample_run(answered(3, 0.8)));
  EXPECT_TRUE(contains(answer_of(summary),
                       {"Not a verdict yet: 3 launches, 6 needed (`decodelab sweep --resume ", " --launches 6`)."}));
  EXPECT_TRUE(contains(answer_of(summary, "other.sqlite"), {" --store other.sqlite --launches 6`)."}));
}

TEST(Answer, SaysHowLongTheMissingLaunchesWouldTake) {
  RunSummary summary = summarize(sample_run(answered(3, 0.8)));
  summary.times_spent = {{.launch = 0, .activity = Activity::timing, .ns = 180'000'000'000}};
  EXPECT_TRUE(contains(answer_of(summary), {"6 needed (about 3 min more: `"}));
}

TEST(Answer, DoesNotCallADifferenceWhatTheIntervalDoesNotShow) {
  EXPECT_EQ(
      effect_words(
          {.arm = "bigcode", .baseline = "causal", .cells = 8, .time_ratio = 0.99, .interval = Interval{0.95, 1.03}}),
      "no difference between bigcode and causal was resolved (time ratio 0.990 [0.950, 1.030], 8 cells)");
}

TEST(Answer, CallsTheSameWhatTheVerdictCallsSo) {
  EXPECT_EQ(effect_words({.arm = "a",
                          .baseline = "b",
                          .cells = 1,
                          .time_ratio = 1.002,
                          .interval = Interval{1.001, 1.003},
                          .verdict = Verdict::same}),
            "a takes as long as b, within 1.0 % (time ratio 1.0020 [1.0010, 1.0030], 1 cell)");
}

TEST(Answer, PutsOutputsThatDifferBeforeAnyTime) {
  RunData data = sample_run(answered(8, 0.8));
  for (CellArmRecord& row : data.cell_arms) {
    if (row.arm_id == data.arms[1].id && row.cell_id == data.cells[0].id) {
      row.status = RowStatus::incorrect;
    }
  }
  EXPECT_TRUE(answer_of(summarize(data))
                  .starts_with("bigcode puts out other tokens than the reference in 1 of 2 cells: no time is compared "
                               "there. bigcode takes"));
}

TEST(Answer, NamesThreeArmsAtMostTheLargestEffectFirst) {
  SampleOptions options = answered(8, 0.8);
  options.arms = {{"causal"}, {"a", 0.9}, {"b", 0.5}, {"c", 1.2}, {"d", 0.98}};
  const std::string text = answer(options);
  EXPECT_TRUE(text.starts_with("b takes 49.6 % less")) << text;
  EXPECT_TRUE(contains(text, {"; c takes 20 % more", "; a takes 9.7 % less", "; 1 more arm stands in the table."}));
}

TEST(Answer, SaysThatNothingWasComparedWhereOneArmWasMeasured) {
  SampleOptions options = answered(8, 0.8);
  options.arms = {{"causal"}};
  EXPECT_EQ(answer(options), "One arm was measured, and compared with no other.");
}

}  // namespace
}  // namespace decodelab
