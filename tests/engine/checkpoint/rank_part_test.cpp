// What each rank holds of the weights of models of several families.
#include "engine/checkpoint/rank_part.h"

#include <set>

#include <gtest/gtest.h>

#include "engine/checkpoint/synthetic.h"

namespace decodelab {
namespace {

std::vector<ModelConfig> synthetic_models() {
  std::vector<ModelConfig> models;
  for (const char* name :
       {"synthetic:tiny", "synthetic:tiny-starcoder", "synthetic:smollm2-135m", "synthetic:pythia-160m",
        "synthetic:flan-t5-small", "synthetic:gpt2", "synthetic:qwen3-0.6b"}) {
    const auto config = synthetic_config(name);
    EXPECT_TRUE(config) << name;
    models.push_back(*config);
  }
  return models;
}

/// Every index of the axis that a role is cut along, as all ranks together hold it.
std::multiset<std::int64_t> held(const ModelConfig& config, const std::string& role, std::int64_t ranks) {
  std::multiset<std::int64_t> indices;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto cut = weight_cut(config, role, {.rank = rank, .ranks = ranks});
    for (const IndexRange& range : cut.value().ranges) {
      for (std::int64_t index = range.first; index < range.first + range.count; ++index) {
        indices.insert(index);
      }
    }
  }
  return indices;
}

TEST(RankPart, EveryIndexOfAMatrixThatIsCutIsHeldByOneRank) {
  for (const ModelConfig& config : synthetic_models()) {
    for (const std::int64_t ranks : {2, 3}) {
      if (!reason_against_ranks(config, ranks).empty() || config.kv_heads < ranks) {
        continue;
      }
      std::size_t cuts = 0;
      for (const RoleSpec& role : weight_roles(config)) {
        const auto cut = weight_cut(config, role.role, {.rank = 1, .ranks = ranks});
        if (!cut || cut->ranges.empty()) {
          continue;
        }
        ++cuts;
        const std::int64_t size = role.shape.at(static_cast<std::size_t>(cut->axis));
        const std::multiset<std::int64_t> indices = held(config, role.role, ranks);
        EXPECT_EQ(std::ssize(indices), size) << role.role;
        EXPECT_EQ(std::set(indices.begin(), indices.end()).size(), indices.size()) << role.role;
        EXPECT_EQ(*indices.begin(), 0) << role.role;
        EXPECT_EQ(*indices.rbegin(), size - 1) << role.role;
      }
      EXPECT_GE(cuts, static_cast<std::size_t>(4 * config.layers));
    }
  }
}

TEST(RankPart, AKeyHeadOfFewerThanRanksStandsOnSeveral) {
  const ModelConfig config = *synthetic_config("synthetic:tiny-starcoder");
  ASSERT_EQ(config.kv_heads, 1);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const ModelConfig part = part_config(config, {.rank = rank, .ranks = 3});
    EXPECT_EQ(part.heads, config.heads / 3);
    EXPECT_EQ(part.kv_heads, 1);
    const WeightCut keys = kv_cut(config, {.rank = rank, .ranks = 3});
    ASSERT_EQ(keys.ranges.size(), 2u);
    EXPECT_EQ(keys.ranges[0].first, 0);
    EXPECT_EQ(keys.ranges[1].first, config.head_dim);
    EXPECT_EQ(keys.count(), 2 * config.head_dim);
  }
}

TEST(RankPart, TheBiasOfASumOverRanksIsTheFirstRanksAlone) {
  const ModelConfig config = *synthetic_config("synthetic:tiny");
  EXPECT_FALSE(weight_cut(config, "layers.0.down.bias", {.rank = 0, .ranks = 2}));
  const auto other = weight_cut(config, "layers.0.down.bias", {.rank = 1, .ranks = 2});
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->ranges.empty());
  EXPECT_FALSE(weight_cut(config, "layers.0.mlp_norm.bias", {.rank = 1, .ranks = 2}));
}

TEST(RankPart, PartsOfTheHeadMayDifferByOneToken) {
  ModelConfig config = *synthetic_config("synthetic:tiny");
  config.vocabulary_size = 97;
  std::int64_t next = 0;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const IndexRange rows = head_rows(config, {.rank = rank, .ranks = 4});
    EXPECT_EQ(rows.first, next);
    EXPECT_TRUE(rows.count == 24 || rows.count == 25);
    next += rows.count;
  }
  EXPECT_EQ(next, 97);
}

TEST(RankPart, ModelsThatDoNotDivideAreRefusedInASentence) {
  const ModelConfig smollm2 = *synthetic_config("synthetic:smollm2-135m");
  EXPECT_EQ(reason_against_ranks(smollm2, 3), "");
  EXPECT_NE(reason_against_ranks(smollm2, 2).find("9 heads, which 2 ranks cannot share evenly"), std::string::npos);
  EXPECT_THROW(part_config(smollm2, {.rank = 0, .ranks = 2}), std::invalid_argument);
  ModelConfig uneven = smollm2;
  uneven.heads = 12;
  EXPECT_NE(reason_against_ranks(uneven, 2).find("3 key heads"), std::string::npos);
  uneven.kv_heads = 4;
  uneven.intermediate_size = 1535;
  EXPECT_NE(reason_against_ranks(uneven, 2).find("1535 columns"), std::string::npos);
}

}  // namespace
}  // namespace decodelab
