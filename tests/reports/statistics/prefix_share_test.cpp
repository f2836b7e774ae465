// What labels say of prefix stores.
#include "reports/statistics/prefix_share.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(PrefixShare, StandsBehindItsSettingInALabel) {
  EXPECT_EQ(prefix_share("native@prefix=0.875"), std::optional(0.875));
  EXPECT_EQ(prefix_share("native@prefix=0@samples=4"), std::optional(0.0));
  EXPECT_EQ(prefix_share("native"), std::nullopt);
  EXPECT_EQ(prefix_share("native@regex=a@@prefix=0.5"), std::nullopt) << "that is part of a pattern";
  EXPECT_EQ(prefix_share("native@prefix=much"), std::nullopt);
  EXPECT_EQ(prefix_share("native@prefix=0.5:turns@samples=4"), std::optional(0.5));
}

TEST(PrefixShare, LeavesTheRestOfALabel) {
  EXPECT_EQ(without_prefix_share("native@prefix=0.875"), "native");
  EXPECT_EQ(without_prefix_share("causal,+forced-miss@prefix=0@samples=4"), "causal,+forced-miss@samples=4");
  EXPECT_EQ(without_prefix_share("native@samples=4"), "native@samples=4");
  EXPECT_EQ(without_prefix_share("native@prefix=0.5:turns"), "native (turns)") << "prompts of another kind";
}

}  // namespace
}  // namespace decodelab
