// Computes the activation of the feed-forward part together with the product before it.
#include <utility>

#include "engine/layers/mlp.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class FusedGelu final : public Mlp {
 public:
  FusedGelu(std::unique_ptr<Linear> up, std::unique_ptr<Linear> down, Activation activation)
      : up_(std::move(up)), down_(std::move(down)), activation_(activation) {}

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    return down_->forward(up_->activated(x, activation_, workspace), workspace);
  }

 private:
  std::unique_ptr<Linear> up_;
  std::unique_ptr<Linear> down_;
  Activation activation_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.mlp.bind("fused-gelu", [](const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared) {
    return std::make_unique<FusedGelu>(linear(weights.up, prepared), linear(weights.down, prepared),
                                       weights.activation);
  });
}

/// Expects a count of 0 for libtorch's activation, which the reference calls: an operator that was not called has no
/// counter.
std::vector<Expectation> expects(const CountedSteps&, const Parameters&) { return {{"op.aten::gelu", 0}}; }

std::string unsupported(const RunsOn& where) {
  if (where.plan != nullptr && !where.plan->linear.variant().empty()) {
    return "";  // our own products compute either form
  }
  const bool tanh = where.config.activation == Activation::gelu_tanh;
  if (where.device == "cpu" && tanh) {
    return "libtorch's product computes the erf form of gelu on a CPU, and this model has the tanh form; "
           "packed-linear computes either";
  }
  if (where.device != "cpu" && !tanh) {
    return "cuBLASLt computes the tanh form of gelu, and this model has the erf form";
  }
  return "";
}

std::string conflict(const EnginePlan& plan) {
  if (plan.linear.variant() == "transposed-linear") {
    return "fused-gelu has no effect beside transposed-linear, whose product ends before the activation: remove one of "
           "them, or use packed-linear or the reference's product";
  }
  return "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "fused-gelu",
    .summary = "The activation is computed with the product before it, and never read back.",
    .source = "SantaCoder study (text-generation-inference, bigcode): fused dense and gelu; cuBLASLt's epilogues",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
