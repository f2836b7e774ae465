// The reference of the feed-forward part.
#include "engine/layers/mlp.h"

#include <utility>

#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

class PlainMlp final : public Mlp {
 public:
  PlainMlp(const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared)
      : up_(linear(weights.up, prepared)),
        down_(linear(weights.down, prepared)),
        activation_(weights.activation),
        gated_(weights.gated) {}

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    const at::Tensor up = up_->forward(x, workspace);
    if (!gated_) {
      return down_->forward(activate(up, activation_, workspace), workspace);
    }
    const std::int64_t width = up.size(-1) / 2;
    const at::Tensor gate = activate(up.narrow(-1, 0, width), activation_, workspace);
    const at::Tensor other = up.narrow(-1, width, width);
    if (!workspace.reuses()) {
      return down_->forward(gate * other, workspace);
    }
    at::Tensor product = workspace.allocate_rows(up, width);
    return down_->forward(at::mul_out(product, gate, other), workspace);
  }

 private:
  std::unique_ptr<Linear> up_;
  std::unique_ptr<Linear> down_;
  Activation activation_;
  bool gated_;
};

}  // namespace

std::unique_ptr<Mlp> make_plain_mlp(const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared) {
  return std::make_unique<PlainMlp>(weights, linear, prepared);
}

}  // namespace decodelab
