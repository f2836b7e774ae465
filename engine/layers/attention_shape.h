// The shape and the rules of attention: all that its kernels need to know of a model.
#pragma once

#include <cstdint>

namespace decodelab {

struct ModelConfig;

/// Describes the attention of every layer of a model. The letters H, G and k of other headers are `heads`, `kv_heads`
/// and `head_dim`; H is a multiple of G, and H * k need not be the model's width.
struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< 1 for multi-query attention (Shazeer 2019, arXiv:1911.02150).
  std::int64_t head_dim = 0;
  double scale = 1;             ///< Scores are multiplied by it.
  bool softmax_in_fp32 = true;  ///< 16-bit scores are raised to fp32 before the softmax.
  /// 16-bit scores are divided by (layer + 1) before they are raised to fp32, and multiplied again after.
  bool unscales_by_layer = false;
  bool masks = false;  ///< Some layers hide more than what follows a query, or add a bias to scores.

  /// Returns the number of query heads that share a key head.
  std::int64_t shared_heads() const { return heads / kv_heads; }
  /// Returns the elements of a token's queries, H * k.
  std::int64_t query_width() const { return heads * head_dim; }
  /// Returns the elements of a token's keys, or of its values, G * k.
  std::int64_t key_width() const { return kv_heads * head_dim; }
};

/// Returns the shape of a model's attention.
AttentionShape attention_shape(const ModelConfig& config);

}  // namespace decodelab
