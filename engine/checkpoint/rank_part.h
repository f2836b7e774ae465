// Tensor parallelism: which part of each weight a rank holds (Megatron-LM: Shoeybi et al. 2019, arXiv:1909.08053).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace decodelab {

/// One of the ranks that share a model: each has some heads and some columns of the MLP.
struct RankPart {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;

  bool whole() const { return ranks == 1; }
};

/// Returns in one sentence why so many ranks cannot share a model; empty where they can. Heads must divide; key heads
/// divide, or are fewer and stand on several ranks each.
std::string reason_against_ranks(const ModelConfig& config, std::int64_t ranks);

/// Returns the configuration of what one rank holds: fewer heads, key heads and columns of the MLP, and the whole
/// vocabulary, since a rank's part of the head is seen by the head alone. Throws std::invalid_argument where the ranks
/// cannot share the model.
ModelConfig part_config(const ModelConfig& config, const RankPart& part);

/// Indices [first, first + count) of an axis.
struct IndexRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Which indices of one axis of a weight a rank holds, in this order.
struct WeightCut {
  std::int64_t axis = 0;
  std::vector<IndexRange> ranges;  ///< None: the rank has nothing of it.

  std::int64_t count() const;
};

/// Returns which part of the weight `role` (RoleSpec) a rank holds; empty: all of it. `config` is that of the whole
/// model. Query, key and value, gate and up, and the head are cut by outputs, and what follows them by inputs; the bias
/// of a sum over ranks is the first rank's alone.
std::optional<WeightCut> weight_cut(const ModelConfig& config, std::string_view role, const RankPart& part);

/// Returns which of the numbers of a token's keys and values, all keys first, a rank holds.
WeightCut kv_cut(const ModelConfig& config, const RankPart& part);

/// Returns the rows of the head, one a token of the vocabulary, that a rank multiplies by.
IndexRange head_rows(const ModelConfig& config, const RankPart& part);

}  // namespace decodelab
