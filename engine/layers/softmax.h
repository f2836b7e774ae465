// From scores to weights inside the reference's attention: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>

namespace at {
class Tensor;
}

namespace decodelab {

class Workspace;
class StepRows;

/// The lowest finite scores, which hide a key; not -inf, by which a query that sees none would give NaN instead of a
/// uniform row. bfloat16's serves fp32 too.
inline constexpr double kLowestHalf = -65504.0;
inline constexpr double kLowestBfloat16 = -3.3895313892515355e38;

/// Holds the inputs of a softmax: B rows, G key heads, T queries, R query heads per key head, L keys.
struct SoftmaxCall {
  const at::Tensor& scores;  ///< [B, G, T, R, L] in the model's dtype
  const at::Tensor* bias;    ///< Added before the mask, broadcast to the scores' shape; or null
  const StepRows& rows;      ///< The keys that each query sees
  bool upcast;               ///< 16-bit scores are raised to fp32 first
  double unscale;            ///< What the upcast scores are multiplied by; 1 without upcast
  std::int64_t window;       ///< Keys that a query sees, its own the last; 0: all that precede it
  Workspace& workspace;
};

class Softmax {
 public:
  virtual ~Softmax() = default;

  /// Returns softmax(mask(scores * unscale + bias)) over the last dimension, in the scores' shape and dtype. A query
  /// sees at least one key.
  virtual at::Tensor forward(const SoftmaxCall& call) const = 0;
  /// Returns the most bytes that forward() holds besides the scores, its result included, for that many scores of
  /// `element_bytes` each.
  virtual std::int64_t workspace_bytes(std::int64_t scores, std::int64_t element_bytes) const = 0;
};

/// The reference: upcast, scale, mask, softmax and downcast, one operator each.
std::unique_ptr<Softmax> make_unfused_softmax();

}  // namespace decodelab
