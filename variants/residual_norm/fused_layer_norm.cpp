// Residual and norm, layer or RMS, in one kernel.
#include <stdexcept>

#include "engine/kernels/device_element.h"
#include "engine/kernels/elementwise/fused_norm.cuh"
#include "engine/kernels/elementwise/fused_norm.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/workspace.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Elements per task: fewer are not worth another thread.
constexpr std::int64_t kElementsOfATask = 16384;

class FusedLayerNorm final : public ResidualNorm {
 public:
  explicit FusedLayerNorm(const NormWeights& weights)
      : kind_(weights.kind),
        weight_(weights.weight.contiguous()),
        epsilon_(static_cast<float>(weights.epsilon)),
        isa_(best_cpu_isa()) {
    if (weights.bias != nullptr) {
      bias_ = weights.bias->contiguous();
    }
  }

  NormedResidual forward(const at::Tensor& addend, const at::Tensor& residual, Workspace& workspace) const override {
    const Range range(Stage::norm);
    NormedResidual result{.residual = workspace.allocate(residual.sizes(), residual.options()),
                          .normed = workspace.allocate(residual.sizes(), residual.options())};
    const at::Tensor added = addend.contiguous();
    run(&added, residual.contiguous(), &result.residual, result.normed);
    return result;
  }

  at::Tensor norm(const at::Tensor& residual, Workspace& workspace) const override {
    const Range range(Stage::norm);
    at::Tensor normed = workspace.allocate(residual.sizes(), residual.options());
    run(nullptr, residual.contiguous(), nullptr, normed);
    return normed;
  }

 private:
  void run(const at::Tensor* addend, const at::Tensor& residual, const at::Tensor* sum,
           const at::Tensor& normed) const {
    if (!residual.is_cpu()) {
      run_on_device(addend, residual, sum, normed);
      return;
    }
    const std::int64_t d = weight_.numel();
    const FusedNorm norm{.kind = kind_,
                         .dtype = element_type(residual.scalar_type()),
                         .width = d,
                         .addend = addend == nullptr ? nullptr : addend->const_data_ptr(),
                         .residual = residual.const_data_ptr(),
                         .weight = weight_.const_data_ptr(),
                         .bias = bias_.defined() ? bias_.const_data_ptr() : nullptr,
                         .epsilon = epsilon_,
                         .sum = sum == nullptr ? nullptr : sum->mutable_data_ptr(),
                         .normed = normed.mutable_data_ptr()};
    at::parallel_for(0, residual.numel() / d, std::max<std::int64_t>(1, kElementsOfATask / d),
                     [&](std::int64_t first, std::int64_t last) { norm_rows(norm, first, last, isa_); });
  }

  void run_on_device([[maybe_unused]] const at::Tensor* addend, [[maybe_unused]] const at::Tensor& residual,
                     [[maybe_unused]] const at::Tensor* sum, [[maybe_unused]] const at::Tensor& normed) const {
#ifdef DECODELAB_HAS_CUDA
    const std::int64_t d = weight_.numel();
    const DeviceNorm norm{.kind = kind_,
                          .element = device_element(residual.scalar_type()),
                          .rows = residual.numel() / d,
                          .width = d,
                          .addend = addend == nullptr ? nullptr : addend->const_data_ptr(),
                          .residual = residual.const_data_ptr(),
                          .weight = weight_.const_data_ptr(),
                          .bias = bias_.defined() ? bias_.const_data_ptr() : nullptr,
                          .epsilon = epsilon_,
                          .sum = sum == nullptr ? nullptr : sum->mutable_data_ptr(),
                          .normed = normed.mutable_data_ptr()};
    on_stream_of(residual, [&](CUstream_st* stream) { launch_fused_norm(norm, stream); });
#else
    throw std::invalid_argument("fused-layer-norm on a GPU needs a build with CUDA");
#endif
  }

  NormKind kind_;
  at::Tensor weight_;
  at::Tensor bias_;  ///< Undefined where there is none.
  float epsilon_;
  CpuIsa isa_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.residual_norm.bind("fused-layer-norm",
                          [](const NormWeights& weights) { return std::make_unique<FusedLayerNorm>(weights); });
}

/// Expects a count of 0 for libtorch's norm, which the reference calls: an operator that was not called has no counter.
/// Norms over heads belong to another slot, whose reference calls it for queries and for keys.
std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  const ModelConfig& config = counted.config;
  if (config.norm == NormKind::layer) {
    return {{"op.aten::layer_norm", 0}};
  }
  const bool over_heads = config.qk_norm && counted.plan.rotary.variant().empty();
  return {{"op.aten::rsqrt", over_heads ? 2 * config.layers * counted.steps : 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "fused-layer-norm",
    .summary = "The residual is added and the sum normed in one kernel, which gives both.",
    .source = "SantaCoder study (text-generation-inference, bigcode): FastLayerNorm; flash-attention's dropout_add_ln",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
