// A matrix product with weights that never change: the interface of a slot, and its reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/stored_blocks.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/element_type.h"

namespace at {
class Tensor;
}

namespace decodelab {

class PreparedWeights;
class Workspace;

/// Refers to the weights of one product, which outlive every Linear.
struct LinearWeights {
  std::string name;          ///< The role; prepared weights are keyed by it.
  std::int64_t outputs = 0;  ///< N
  std::int64_t inputs = 0;   ///< K
  ElementType dtype = ElementType::float32;
  const at::Tensor* bias = nullptr;  ///< [N], or null
  /// How a GGUF file holds W, parts one above the other; empty where it holds numbers.
  std::vector<StoredBlocks> blocks{};
  /// W is that of a gated MLP, and gated() alone will be called.
  bool gated = false;
  /// Returns W, [N, K], to be read once and not in steps: it may lie in a file, or be freed with the tensor.
  std::function<at::Tensor()> read;
  /// Returns W in memory, for steps.
  std::function<const at::Tensor&()> load;

  std::size_t bytes() const { return static_cast<std::size_t>(outputs * inputs) * element_bytes(dtype); }
};

/// Computes y = x W^T + b.
class Linear {
 public:
  virtual ~Linear() = default;

  /// Returns the bytes of weights that a product reads where they are held in another type than the model's; else 0.
  virtual std::int64_t coded_bytes() const { return 0; }
  /// Returns W as it is held, [N, K] in fp32 in the memory of a host or a device. Throws std::logic_error where it is
  /// held as it is in the model.
  virtual at::Tensor dequantized() const;

  /// x is [.., K] in the model's dtype; returns [.., N].
  virtual at::Tensor forward(const at::Tensor& x, Workspace& workspace) const = 0;
  /// Returns activation(forward(x)); an implementation may compute both in one pass.
  virtual at::Tensor activated(const at::Tensor& x, Activation activation, Workspace& workspace) const;
  /// Returns activation(first half) * second half of forward(x), [.., N / 2]; an implementation may compute all in one
  /// pass. This one multiplies, and then reads the product once.
  virtual at::Tensor gated(const at::Tensor& x, Activation activation, Workspace& workspace) const;
};

/// Returns activation(x), written over x where the workspace reuses memory.
at::Tensor activate(const at::Tensor& x, Activation activation, Workspace& workspace);

/// The reference: libtorch's linear.
std::unique_ptr<Linear> make_plain_linear(const LinearWeights& weights, PreparedWeights& prepared);

}  // namespace decodelab
