// oneDNN's products with weights that it has brought into its own order once.
#pragma once

#include <memory>
#include <optional>

#include "engine/kernels/activation.h"
#include "engine/tensor.h"

namespace decodelab {

/// A weight in the order of oneDNN's matrix kernels, for products of many rows, which are bound by arithmetic.
///
/// libtorch's linear hands the kernels the weight as it stands, and they bring it into their order in every call, which
/// a prompt of some hundred tokens does not pay back: on a 2-core AVX-512 machine, 128 rows, the packed product did 1.2
/// times the FLOP/s in bf16, 1.2 to 1.9 times in fp32. The operators are those that libtorch's own compiler calls
/// (mkldnn::_linear_pointwise).
class OneDnnLinear {
 public:
  /// Copies `weight` [N, K], fp32 or bf16 on a CPU. Null where libtorch has no oneDNN, or the processor lacks what its
  /// bf16 kernels need.
  static std::unique_ptr<OneDnnLinear> make(const at::Tensor& weight);

  /// activation(x W^T + b) of x [.., K] in the weight's dtype; the activation sees the sums in fp32.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& bias,
                     std::optional<Activation> activation) const;

 private:
  explicit OneDnnLinear(at::Tensor packed) : packed_(std::move(packed)) {}

  at::Tensor packed_;  ///< Opaque.
};

}  // namespace decodelab
