// The reference of residual and norm.
#include "engine/layers/residual_norm.h"

#include "profiles/range.h"

namespace decodelab {
namespace {

class PlainResidualNorm final : public ResidualNorm {
 public:
  explicit PlainResidualNorm(const NormWeights& weights)
      : weight_(weights.weight), bias_(weights.bias), epsilon_(weights.epsilon) {}

  NormedResidual forward(const at::Tensor& addend, const at::Tensor& residual, Workspace& workspace) const override {
    const Range range(Stage::norm);
    at::Tensor sum = residual + addend;
    at::Tensor normed = norm(sum, workspace);
    return {.residual = std::move(sum), .normed = std::move(normed)};
  }

  at::Tensor norm(const at::Tensor& residual, Workspace&) const override {
    const Range range(Stage::norm);
    return at::layer_norm(residual, weight_.sizes(), weight_, bias_, epsilon_);
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  double epsilon_;
};

}  // namespace

std::unique_ptr<ResidualNorm> make_plain_residual_norm(const NormWeights& weights) {
  return std::make_unique<PlainResidualNorm>(weights);
}

}  // namespace decodelab
