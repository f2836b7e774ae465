// The residual and the norm that follows it: the interface of a slot, and its reference.
#pragma once

#include <memory>

#include "engine/kernels/norm_kind.h"
#include "engine/tensor.h"

namespace decodelab {

class Workspace;

/// A norm over the last dimension, d elements.
struct NormWeights {
  NormKind kind = NormKind::layer;
  const at::Tensor& weight;  ///< [d]
  const at::Tensor* bias;    ///< [d], of a layer norm; else null.
  double epsilon;
};

/// Holds the residual, which is the sum so far, and its norm.
struct NormedResidual {
  at::Tensor residual;
  at::Tensor normed;
};

class ResidualNorm {
 public:
  virtual ~ResidualNorm() = default;

  /// Returns residual + addend, rounded to the model's dtype, and its norm; both [.., d].
  virtual NormedResidual forward(const at::Tensor& addend, const at::Tensor& residual, Workspace& workspace) const = 0;
  /// Returns the norm of a residual that nothing is added to.
  virtual at::Tensor norm(const at::Tensor& residual, Workspace& workspace) const = 0;
};

/// The reference: an addition, then libtorch's layer norm, or the operators of Hugging Face's RMS norms.
std::unique_ptr<ResidualNorm> make_plain_residual_norm(const NormWeights& weights);

}  // namespace decodelab
