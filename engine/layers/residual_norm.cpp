// The reference of residual and norm.
#include "engine/layers/residual_norm.h"

#include "profiles/range.h"

namespace decodelab {
namespace {

class PlainResidualNorm final : public ResidualNorm {
 public:
  explicit PlainResidualNorm(const NormWeights& weights)
      : kind_(weights.kind), weight_(weights.weight), epsilon_(weights.epsilon) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  NormedResidual forward(const at::Tensor& addend, const at::Tensor& residual, Workspace& workspace) const override {
    const Range range(Stage::norm);
    at::Tensor sum = residual + addend;
    at::Tensor normed = norm(sum, workspace);
    return {.residual = std::move(sum), .normed = std::move(normed)};
  }

  at::Tensor norm(const at::Tensor& residual, Workspace&) const override {
    const Range range(Stage::norm);
    if (kind_ == NormKind::layer) {
      return at::layer_norm(residual, weight_.sizes(), weight_, bias_, epsilon_);
    }
    const at::Tensor wide = residual.to(at::kFloat);
    const at::Tensor normed = wide * at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + epsilon_);
    if (kind_ == NormKind::rms) {
      return weight_ * normed.to(residual.scalar_type());
    }
    return (normed * (1.0 + weight_.to(at::kFloat))).to(residual.scalar_type());
  }

 private:
  NormKind kind_;
  at::Tensor weight_;
  at::Tensor bias_;  ///< Undefined where there is none.
  double epsilon_;
};

}  // namespace

std::unique_ptr<ResidualNorm> make_plain_residual_norm(const NormWeights& weights) {
  return std::make_unique<PlainResidualNorm>(weights);
}

}  // namespace decodelab
