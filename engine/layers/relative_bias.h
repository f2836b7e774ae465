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
  /// `weights` is [buckets, H].
  ScoreBias(const RelativeBias& rule, const at::Tensor& weights, bool both_ways);

  /// Returns the bias of a step's queries over the first `keys` keys: [B, H, T, keys], B = 1 where rows are of one
  /// length.
  at::Tensor of(const StepRows& rows, std::int64_t keys) const;
  /// Returns the bias of `tokens` tokens over each other: [1, H, tokens, tokens].
  at::Tensor of_each_other(std::int64_t tokens) const;

 private:
  at::Tensor of_distances(const at::Tensor& distances) const;

  std::int64_t farthest_;
  at::Tensor by_distance_;  ///< [2 * farthest + 1, H]: -farthest first.
};

}  // namespace decodelab
