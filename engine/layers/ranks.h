// What the layers of a model that several ranks share ask of the other ranks.
#pragma once

#include <functional>

namespace at {
class Tensor;
}

namespace decodelab {

/// Each rank holds some heads and some columns of the MLP (engine/checkpoint/rank_part.h), and the same residual. Every
/// rank runs the same layers on the same tokens.
class Ranks {
 public:
  virtual ~Ranks() = default;

  /// Replaces `part`, which is contiguous, by its sum over all ranks; each gets the same bits.
  virtual void sum(const at::Tensor& part) = 0;
  /// Returns the logits [R, V] of `normed` [R, d] on the first rank, which has the others multiply by their parts of
  /// the head too: `part_of` is that of this rank. On another rank [R, 0]: it does its part when the first asks for it.
  virtual at::Tensor head(const at::Tensor& normed, const std::function<at::Tensor(const at::Tensor&)>& part_of) = 0;
};

}  // namespace decodelab
