// Computes the activation of the feed-forward part, and a gate's multiplication, together with the product before it.
#include <memory>
#include <string>
#include <vector>

#include "engine/layers/mlp.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class FusedGelu final : public Mlp {
 public:
  FusedGelu(const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared)
      : down_(linear(weights.down, prepared)), activation_(weights.activation), gated_(weights.gated) {
    LinearWeights up = weights.up;
    up.gated = weights.gated;
    up_ = linear(up, prepared);
  }

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    return down_->forward(gated_ ? up_->gated(x, activation_, workspace) : up_->activated(x, activation_, workspace),
                          workspace);
  }

 private:
  std::unique_ptr<Linear> up_;
  std::unique_ptr<Linear> down_;
  Activation activation_;
  bool gated_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.mlp.bind("fused-gelu", [](const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared) {
    return std::make_unique<FusedGelu>(weights, linear, prepared);
  });
}

/// Expects a count of 0 for libtorch's activation, which the reference calls: an operator that was not called has no
/// counter.
std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  switch (counted.config.activation) {
    case Activation::gelu_tanh:
    case Activation::gelu_erf: return {{"op.aten::gelu", 0}};
    case Activation::silu: return {{"op.aten::silu", 0}};
    case Activation::relu: break;
  }
  // Only an own product, or an own gate, has this activation in it.
  const bool own = counted.config.gated_mlp || !counted.plan.linear.variant().empty();
  return own ? std::vector<Expectation>{{"op.aten::relu", 0}} : std::vector<Expectation>{};
}

std::string unsupported(const RunsOn& where) {
  if (where.config.gated_mlp) {
    return "";
  }
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
    .summary =
        "The activation, and what a gate multiplies, is computed with the product before it and never read back.",
    .source = "SantaCoder study (text-generation-inference, bigcode): fused dense and gelu; cuBLASLt's epilogues",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
