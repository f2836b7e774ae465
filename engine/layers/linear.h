// A matrix product with weights that never change: the interface of a slot, and its reference.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/kernels/activation.h"

namespace at {
class Tensor;
}

namespace decodelab {

class PreparedWeights;
class Workspace;

/// Refers to the weights of one product, as the checkpoint has them. They outlive every Linear.
struct LinearWeights {
  std::string name;          ///< Name of the checkpoint's tensors without `.weight`; prepared weights are keyed by it.
  const at::Tensor& weight;  ///< [N, K], maybe still in a file: to be read a few times only; steps read in_memory().
  const at::Tensor* bias;    ///< [N], or null
  std::function<const at::Tensor&()> load{};  ///< Brings `weight` into memory; empty where it is already there.

  const at::Tensor& in_memory() const { return load ? load() : weight; }
};

/// Computes y = x W^T + b.
class Linear {
 public:
  virtual ~Linear() = default;

  /// x is [.., K] in the model's dtype; returns [.., N].
  virtual at::Tensor forward(const at::Tensor& x, Workspace& workspace) const = 0;
  /// Returns activation(forward(x)); an implementation may compute both in one pass.
  virtual at::Tensor activated(const at::Tensor& x, Activation activation, Workspace& workspace) const;
};

/// Returns activation(x), written over x where the workspace reuses memory.
at::Tensor activate(const at::Tensor& x, Activation activation, Workspace& workspace);

/// The reference: libtorch's linear.
std::unique_ptr<Linear> make_plain_linear(const LinearWeights& weights, PreparedWeights& prepared);

}  // namespace decodelab
