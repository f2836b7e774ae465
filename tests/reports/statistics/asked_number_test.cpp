// What labels say of the numbers that arms are asked for.
#include "reports/statistics/asked_number.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(PrefixShare, StandsBehindItsSettingInALabel) {
  EXPECT_EQ(asked_number("native@prefix=0.875", kPrefixSetting), std::optional(0.875));
  EXPECT_EQ(asked_number("native@prefix=0@samples=4", kPrefixSetting), std::optional(0.0));
  EXPECT_EQ(asked_number("native", kPrefixSetting), std::nullopt);
  EXPECT_EQ(asked_number("native@regex=a@@prefix=0.5", kPrefixSetting), std::nullopt) << "that is part of a pattern";
  EXPECT_EQ(asked_number("native@prefix=much", kPrefixSetting), std::nullopt);
  EXPECT_EQ(asked_number("native@prefix=0.5:turns@samples=4", kPrefixSetting), std::optional(0.5));
}

TEST(PrefixShare, LeavesTheRestOfALabel) {
  EXPECT_EQ(without_asked("native@prefix=0.875", kPrefixSetting), "native");
  EXPECT_EQ(without_asked("causal,+forced-miss@prefix=0@samples=4", kPrefixSetting), "causal,+forced-miss@samples=4");
  EXPECT_EQ(without_asked("native@samples=4", kPrefixSetting), "native@samples=4");
  EXPECT_EQ(without_asked("native@prefix=0.5:turns", kPrefixSetting), "native (turns)") << "prompts of another kind";
}

TEST(AskedNumber, IsThatOfTheSettingThatIsAskedFor) {
  EXPECT_EQ(asked_number("native@samples=4@top-tokens=20:text", kTopTokensSetting), std::optional(20.0));
  EXPECT_EQ(asked_number("native@prompt-top-tokens=20", kTopTokensSetting), std::nullopt) << "that is of prompts";
  EXPECT_EQ(without_asked("native@samples=4@top-tokens=20:text", kTopTokensSetting), "native@samples=4 (text)");
}

}  // namespace
}  // namespace decodelab
