// Every flag has words, and a table's notes say them.
#include "reports/page/tables/flag_words.h"

#include <gtest/gtest.h>

#include "reports/page/tables/result_tables.h"
#include "reports/statistics/comparison.h"
#include "reports/statistics/row_checks.h"
#include "reports/statistics/summary.h"
#include "reports/store/flags.h"
#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

TEST(FlagWords, SayWhatEachFlagMeans) {
  for (const char* flag : {kLossyFlag, kPeriodNotCoveredFlag, kWarmUpNotQuietFlag, kNotEngagedFlag, kTokensOnlyFlag,
                           kComparedWithFp32Flag, kNearTieFlag, kStepsComparedFlag, kWholeVisitsFlag,
                           kTokensBundledFlag, kRestartedFlag, kThisProcessOnly, kVoidBlocksFlag, kDisturbedFlag,
                           kSaturatedFlag, kCarryOverFlag, kSlopeFlag, kMedianDiffersFlag, kRareCostsFlag}) {
    EXPECT_FALSE(words_of_flag(flag).empty()) << flag;
  }
  EXPECT_EQ(words_of_flag(std::string(kVerifiedAtFlag) + "b2-l16"), "outputs were compared at that batch and length");
  EXPECT_FALSE(words_of_flag(std::string(kUnsteadyFlag) + "allocations").empty());
}

TEST(FlagWords, AreNoneForAFlagOfAnotherVersion) { EXPECT_EQ(words_of_flag("of-tomorrow"), ""); }

TEST(FlagWords, StandBelowTheTableBehindTheFlag) {
  RunData data = testing::sample_run({});
  for (CellArmRecord& row : data.cell_arms) {
    row.flags = {kTokensOnlyFlag, "of-tomorrow"};
  }
  const std::string text = to_text(comparison_tables(summarize(data)).front());
  EXPECT_TRUE(testing::contains(text, {"Flag 'tokens-only' (it returns no logits,", "Flag 'of-tomorrow': "})) << text;
}

}  // namespace
}  // namespace decodelab
