// The reference of the matrix products.
#include "engine/layers/linear.h"

#include "engine/tensor.h"

#include <optional>

namespace decodelab {
namespace {

class PlainLinear final : public Linear {
 public:
  explicit PlainLinear(const LinearWeights& weights) : weight_(weights.weight) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  at::Tensor forward(const at::Tensor& x) const override { return at::linear(x, weight_, bias_); }

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
};

}  // namespace

std::unique_ptr<Linear> make_plain_linear(const LinearWeights& weights, PreparedWeights&) {
  return std::make_unique<PlainLinear>(weights);
}

}  // namespace decodelab
