// The feed-forward part of a layer: the interface of a slot, and its reference.
#pragma once

#include <memory>

#include "engine/kernels/activation.h"
#include "engine/layers/layer_slots.h"
#include "engine/layers/linear.h"

namespace decodelab {

/// Two products with an activation between them; I = intermediate_size. A gated MLP multiplies the activation of one
/// half of `up` with the other half (Shazeer 2020, arXiv:2002.05202).
struct MlpWeights {
  LinearWeights up;    ///< [I, d]; gated: [2 I, d], the gate first.
  LinearWeights down;  ///< [d, I]
  Activation activation;
  bool gated = false;
};

class Mlp {
 public:
  virtual ~Mlp() = default;

  /// Maps [.., d] to [.., d].
  virtual at::Tensor forward(const at::Tensor& x, Workspace& workspace) const = 0;
};

/// The reference: product, activation, maybe a multiplication, and product, one operator each.
std::unique_ptr<Mlp> make_plain_mlp(const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared);

}  // namespace decodelab
