// The bias of scores by the distance of query and key (T5).
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"

namespace decodelab {

/// Returns the bucket of a key that lies `distance` tokens behind its query (before, where negative). An encoder sees
/// both ways, and gives each half of the buckets; a decoder has all of them for what lies before the query. Source:
/// Mesh TensorFlow, transformer_layers.py; computed in fp32 as Hugging Face Transformers does.
std::int64_t relative_bucket(const RelativeBias& rule, std::int64_t distance, bool both_ways);

/// Holds the bias by distance, made once.
class ScoreBias {
 public:
  /// `weights` is [buckets, H]; positions are those of ModelConfig.
  ScoreBias(const RelativeBias& rule, const at::Tensor& weights, std::int64_t positions, bool both_ways);

  /// Returns the bias of a step's queries over the first `keys` keys, [B, H, T, keys], B = 1 where rows are of one
  /// length. A view where each row adds one token to as many as the others.
  at::Tensor of(const StepRows& rows, std::int64_t keys) const;
  /// Returns the bias of `tokens` tokens over each other: [1, H, tokens, tokens].
  at::Tensor of_each_other(std::int64_t tokens) const;

 private:
  at::Tensor between(const at::Tensor& queries, std::int64_t keys) const;

  std::int64_t positions_;
  at::Tensor by_distance_;    ///< [H, 2 * positions - 1]: the key that lies farthest before its query is first.
  at::Tensor key_positions_;  ///< [positions] int64: 0, 1, ..
};

}  // namespace decodelab
