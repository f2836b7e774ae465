// The reference of the matrix products.
#include "engine/layers/linear.h"

#include <optional>
#include <stdexcept>

#include "engine/layers/gate.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

class PlainLinear final : public Linear {
 public:
  explicit PlainLinear(const LinearWeights& weights) : weight_(weights.load()) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    if (!workspace.reuses()) {
      return at::linear(x, weight_, bias_);
    }
    const at::Tensor y = workspace.allocate_rows(x, weight_.size(0));
    at::Tensor out = y.view({-1, weight_.size(0)});
    at::linear_out(out, x.reshape({-1, weight_.size(1)}), weight_, bias_);
    return y;
  }

  /// libtorch's product with a fused activation supports one form of gelu per device: tanh on CUDA, erf on a CPU.
  at::Tensor activated(const at::Tensor& x, Activation activation, Workspace& workspace) const override {
    const Activation fused = x.is_cpu() ? Activation::gelu_erf : Activation::gelu_tanh;
    if (!bias_ || activation != fused) {
      return Linear::activated(x, activation, workspace);
    }
    const at::Tensor flat = x.reshape({-1, weight_.size(1)});
    const at::Tensor y = workspace.allocate_rows(x, weight_.size(0));
    at::Tensor out = y.view({-1, weight_.size(0)});
    at::_addmm_activation_out(out, *bias_, flat, weight_.t(), 1, 1, true);
    return y;
  }

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
};

}  // namespace

at::Tensor Linear::dequantized() const { throw std::logic_error("these weights are held as they are in the model"); }

at::Tensor Linear::activated(const at::Tensor& x, Activation activation, Workspace& workspace) const {
  return activate(forward(x, workspace), activation, workspace);
}

at::Tensor Linear::gated(const at::Tensor& x, Activation activation, Workspace& workspace) const {
  return gate(forward(x, workspace), activation, workspace);
}

at::Tensor activate(const at::Tensor& x, Activation activation, Workspace& workspace) {
  at::Tensor result = x;
  if (activation == Activation::silu) {
    return workspace.reuses() ? at::silu_out(result, x) : at::silu(x);
  }
  if (activation == Activation::relu) {
    return workspace.reuses() ? at::relu_(result) : at::relu(x);
  }
  const char* const form = activation == Activation::gelu_tanh ? "tanh" : "none";
  return workspace.reuses() ? at::gelu_out(result, x, form) : at::gelu(x, form);
}

std::unique_ptr<Linear> make_plain_linear(const LinearWeights& weights, PreparedWeights&) {
  return std::make_unique<PlainLinear>(weights);
}

}  // namespace decodelab
