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

/// The weights of one product, as the checkpoint has them. They outlive every Linear.
struct LinearWeights {
  std::string name;  ///< Of the checkpoint's tensors, without `.weight`: the key of what is prepared.
  const at::Tensor&
      weight;  ///< [N, K], to be read a few times, for it may lie in a file; what steps read is in_memory().
  const at::Tensor* bias;                     ///< [N], or null
  std::function<const at::Tensor&()> load{};  ///< Brings `weight` into memory; empty where it is there.

  const at::Tensor& in_memory() const { return load ? load() : weight; }
};

/// y = x W^T + b.
class Linear {
 public:
  virtual ~Linear() = default;

  /// x is [.., K] in the model's dtype; returns [.., N].
  virtual at::Tensor forward(const at::Tensor& x, Workspace& workspace) const = 0;
  /// activation(forward(x)), where the activation can be had with the product.
  virtual at::Tensor activated(const at::Tensor& x, Activation activation, Workspace& workspace) const;
};

/// activation(x), written over x where the memory is reused.
at::Tensor activate(const at::Tensor& x, Activation activation, Workspace& workspace);

/// The reference: libtorch's linear.
std::unique_ptr<Linear> make_plain_linear(const LinearWeights& weights, PreparedWeights& prepared);

}  // namespace decodelab
