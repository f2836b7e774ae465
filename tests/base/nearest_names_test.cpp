// Tests that suggestions for a mistyped name are the ones a reader would make.
#include "base/nearest_names.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

const std::vector<std::string> kNames = {"kv-grow",          "kv-preallocated", "kv-static",         "fused-softmax",
                                         "fused-layer-norm", "flash-attention", "vectorized-choice", "bigcode"};

TEST(Suggest, CountsEditsAndNeighbourSwapsAsOne) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("flahs", "flash"), 1U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U) << "a swapped pair is not edited again";
}

TEST(Suggest, IsBlindToCase) { EXPECT_EQ(edit_distance("Flash", "fLASH"), 0U); }

TEST(Suggest, FindsTheNameBehindATypingError) {
  EXPECT_EQ(nearest_names("kv-gorw", kNames, 1), std::vector<std::string>({"kv-grow"}));
  EXPECT_EQ(nearest_names("fused-layernorm", kNames, 1), std::vector<std::string>({"fused-layer-norm"}));
}

TEST(Suggest, PutsNamesThatBeginWithTheWordFirst) {
  EXPECT_EQ(nearest_names("flash", kNames).front(), "flash-attention");
  EXPECT_EQ(nearest_names("kv-", kNames), std::vector<std::string>({"kv-grow", "kv-static", "kv-preallocated"}));
}

TEST(Suggest, KeepsTheListedOrderOfEquallyNearNames) {
  const std::vector<std::string> names = {"bb", "aa", "cc"};
  EXPECT_EQ(nearest_names("xx", names), names);
}

TEST(Suggest, GivesNoMoreNamesThanThereAre) {
  EXPECT_EQ(nearest_names("kv", kNames, 100).size(), kNames.size());
  EXPECT_TRUE(nearest_names("kv", {}).empty());
}

TEST(Suggest, AsksWithUpToThreeNames) {
  EXPECT_EQ(did_you_mean("kv-gorw", kNames), "did you mean 'kv-grow'?");
  EXPECT_EQ(did_you_mean("fused", kNames), "did you mean 'fused-softmax' or 'fused-layer-norm'?");
  EXPECT_EQ(did_you_mean("kv", kNames), "did you mean 'kv-grow', 'kv-static' or 'kv-preallocated'?");
}

TEST(Suggest, StaysSilentWhereNothingIsNear) {
  EXPECT_EQ(did_you_mean("tensor-parallelism", kNames), "");
  EXPECT_EQ(did_you_mean("", kNames), "");
}

}  // namespace
}  // namespace decodelab
