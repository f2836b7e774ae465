// Positions of queries and keys between the projection and the cache: the interface of the slot `rotary`, and its
// reference.
#pragma once

#include <memory>
#include <optional>

#include "engine/checkpoint/rotary_rule.h"
#include "engine/layers/attention_shape.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/step_tensors.h"
#include "engine/tensor.h"

namespace decodelab {

/// The cosines and sines of a rule for all positions of a model, made once and shared by its layers.
struct RotaryTable {
  std::int64_t dims;
  at::Tensor cosine;  ///< [positions, dims / 2] in the model's dtype: of fp32 products, rounded once.
  at::Tensor sine;    ///< Likewise.
};

/// Computes a table as Hugging Face Transformers does: angles, cosines and sines in fp32.
std::shared_ptr<const RotaryTable> rotary_table(const RotaryRule& rule, std::int64_t positions,
                                                const at::TensorOptions& options);

/// What happens to the queries and keys of one layer: a norm over each head, then the turn.
struct RotaryWeights {
  AttentionShape shape;
  std::shared_ptr<const RotaryTable> table;  ///< Null where this layer turns nothing.
  std::optional<NormWeights> query_norm{};   ///< Over k elements.
  std::optional<NormWeights> key_norm{};
};

class Rotary {
 public:
  virtual ~Rotary() = default;

  /// Returns the projections with queries and keys normed and turned; values stay as they are. Where the step has a
  /// room, writes keys and values there and returns none.
  virtual Projected forward(const Projected& projected, const ForwardStep& step) const = 0;
  /// Returns whether forward() takes a room.
  virtual bool writes_cache() const { return false; }
};

/// The reference: a norm, and x cos + rotated(x) sin, one operator each, in the model's dtype.
std::unique_ptr<Rotary> make_plain_rotary(const RotaryWeights& weights);

}  // namespace decodelab
