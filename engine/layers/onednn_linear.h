// Matrix products by oneDNN, with weights that oneDNN has reordered once.
#pragma once

#include <memory>
#include <optional>

#include "engine/kernels/activation.h"
#include "engine/tensor.h"

namespace decodelab {

/// Holds a weight in the order of oneDNN's matrix kernels, for products of many rows, which are bound by arithmetic.
///
/// libtorch's linear passes the weight to the kernels unordered, and they reorder it in every call, which a prompt of
/// some hundred tokens does not pay back: on a 2-core AVX-512 machine, 128 rows, the packed product did 1.2 times the
/// FLOP/s in bf16, 1.2 to 1.9 times in fp32. The operators are those that libtorch's own compiler calls
/// (mkldnn::_linear_pointwise).
class OneDnnLinear {
 public:
  /// Copies `weight` [N, K], fp32 or bf16 on a CPU. Returns null where libtorch has no oneDNN, or the processor lacks
  /// what oneDNN's bf16 kernels need.
  static std::unique_ptr<OneDnnLinear> make(const at::Tensor& weight);

  /// Returns activation(x W^T + b) for x [.., K] in the weight's dtype; the activation is applied to the fp32 sums.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& bias,
                     std::optional<Activation> activation) const;

 private:
  explicit OneDnnLinear(at::Tensor packed) : packed_(std::move(packed)) {}

  at::Tensor packed_;  ///< In oneDNN's own format.
};

}  // namespace decodelab
