// Which tensors a checkpoint stores, and which weights of the model are made of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decodelab {

/// Describes one tensor that a checkpoint of a configuration must have.
struct WeightSpec {
  std::string name;  ///< As Hugging Face saves it, e.g. transformer.h.0.attn.c_attn.weight.
  std::vector<std::int64_t> shape;
  bool scales = false;      ///< The scale of a norm: weights made from a seed lie around 1, all others around 0.
  float deviation = 0.02F;  ///< Standard deviation of weights made from a seed.
};

/// Says how stored tensors become a weight; it is done once, when the weight is loaded.
enum class Transform : std::uint8_t {
  none,
  /// Stored as [inputs, outputs].
  transposed,
  /// The columns of all stored tensors, one tensor after the other, each as [inputs, outputs].
  transposed_concatenated,
  /// The rows of all stored tensors, one tensor after the other: query, key and value, or gate and up.
  concatenated,
  /// Rows are stored as [H, (query, key, value), k] and become all queries, all keys, all values.
  split_heads,
};

/// Describes one weight of the model by its role. Roles are the same for all families:
///
///     embedding, positions, head, final_norm,
///     layers.N.attention_norm, .qkv, .query_norm, .key_norm, .attention_out, .attention_post_norm,
///     .mlp_norm, .up, .down, .mlp_post_norm
///
/// and where an encoder reads the prompt
///
///     encoder.layers.N.attention_norm, .qkv, .attention_out, .mlp_norm, .up, .down, encoder.final_norm,
///     layers.N.cross_norm, .cross_query, .cross_key_value, .cross_out, relative_bias, encoder.relative_bias
///
/// each followed by `.weight` or `.bias`. `qkv` has all queries first, then all keys, then all values; `up` of a gated
/// MLP has all of the gate first. A head that is tied to the embedding is not listed.
struct RoleSpec {
  std::string role;
  std::vector<std::int64_t> shape;  ///< Matrices are [outputs, inputs].
  std::vector<WeightSpec> stored;
  Transform transform = Transform::none;
  std::int64_t split_heads = 0;  ///< H, for Transform::split_heads.
};

}  // namespace decodelab
