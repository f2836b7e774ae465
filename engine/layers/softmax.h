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

/// B rows, G key heads, T queries, R query heads a key head, L keys.
struct SoftmaxCall {
  const at::Tensor& scores;  ///< [B, G, T, R, L] in the model's dtype
  const at::Tensor* bias;    ///< Added before the mask, broadcast to the scores' shape; or null
  const StepRows& rows;      ///< Which keys each query sees
  bool upcast;               ///< 16-bit scores are raised to fp32 first
  double unscale;            ///< What the upcast scores are multiplied by; 1 without upcast
  Workspace& workspace;
};

class Softmax {
 public:
  virtual ~Softmax() = default;

  /// Softmax(mask(scores * unscale + bias)) over the last dimension, in the scores' shape and dtype. A query sees at
  /// least one key.
  virtual at::Tensor forward(const SoftmaxCall& call) const = 0;
  /// Bytes that forward() holds at most beside the scores, result included, for so many scores of `element_bytes`.
  virtual std::int64_t workspace_bytes(std::int64_t scores, std::int64_t element_bytes) const = 0;
};

/// The reference: upcast, scale, mask, softmax and downcast, an operator each.
std::unique_ptr<Softmax> make_unfused_softmax();

}  // namespace decodelab
