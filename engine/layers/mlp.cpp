// The reference of the feed-forward part.
#include "engine/layers/mlp.h"

#include <utility>

#include "engine/tensor.h"

namespace decodelab {
namespace {

class PlainMlp final : public Mlp {
 public:
  PlainMlp(std::unique_ptr<Linear> up, std::unique_ptr<Linear> down, Activation activation)
      : up_(std::move(up)), down_(std::move(down)), activation_(activation) {}

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    return down_->forward(activate(up_->forward(x, workspace), activation_, workspace), workspace);
  }

 private:
  std::unique_ptr<Linear> up_;
  std::unique_ptr<Linear> down_;
  Activation activation_;
};

}  // namespace

std::unique_ptr<Mlp> make_plain_mlp(const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared) {
  return std::make_unique<PlainMlp>(linear(weights.up, prepared), linear(weights.down, prepared), weights.activation);
}

}  // namespace decodelab
