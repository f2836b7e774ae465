// Computes the activation of the feed-forward part together with the product before it, or with the gate's
// multiplication after it.
#include <algorithm>
#include <memory>
#include <stdexcept>

#include "engine/kernels/device_element.h"
#include "engine/kernels/elementwise/gate_rows.cuh"
#include "engine/kernels/elementwise/gate_rows.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/mlp.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Elements per task: fewer are not worth another thread.
constexpr std::int64_t kElementsOfATask = 16384;

class FusedGelu final : public Mlp {
 public:
  FusedGelu(const MlpWeights& weights, const LinearFactory& linear, PreparedWeights& prepared)
      : up_(linear(weights.up, prepared)),
        down_(linear(weights.down, prepared)),
        activation_(weights.activation),
        gated_(weights.gated),
        isa_(best_cpu_isa()) {}

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    if (!gated_) {
      return down_->forward(up_->activated(x, activation_, workspace), workspace);
    }
    const at::Tensor up = up_->forward(x, workspace);
    return down_->forward(gated(up, workspace), workspace);
  }

 private:
  /// Returns activation(gate) * up in one pass: [.., 2 I] -> [.., I].
  at::Tensor gated(const at::Tensor& up, Workspace& workspace) const {
    const std::int64_t width = up.size(-1) / 2;
    at::Tensor result = workspace.allocate_rows(up, width);
    if (!up.is_cpu()) {
      gate_on_device(up, result);
      return result;
    }
    const GatedRows rows{.dtype = element_type(up.scalar_type()),
                         .width = width,
                         .activation = activation_,
                         .up = up.const_data_ptr(),
                         .out = result.mutable_data_ptr()};
    at::parallel_for(0, up.numel() / (2 * width), std::max<std::int64_t>(1, kElementsOfATask / width),
                     [&](std::int64_t first, std::int64_t last) { gate_rows(rows, first, last, isa_); });
    return result;
  }

  void gate_on_device([[maybe_unused]] const at::Tensor& up, [[maybe_unused]] const at::Tensor& result) const {
#ifdef DECODELAB_HAS_CUDA
    const std::int64_t width = result.size(-1);
    const DeviceGate gate{.element = device_element(up.scalar_type()),
                          .rows = result.numel() / width,
                          .width = width,
                          .activation = activation_,
                          .up = up.const_data_ptr(),
                          .out = result.mutable_data_ptr()};
    on_stream_of(up, [&](CUstream_st* stream) { launch_gate_rows(gate, stream); });
#else
    throw std::invalid_argument("fused-gelu on a GPU needs a build with CUDA");
#endif
  }

  std::unique_ptr<Linear> up_;
  std::unique_ptr<Linear> down_;
  Activation activation_;
  bool gated_;
  CpuIsa isa_;
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
        "The activation is computed with the product before it, or with a gate's multiplication, and never read back.",
    .source = "SantaCoder study (text-generation-inference, bigcode): fused dense and gelu; cuBLASLt's epilogues",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
