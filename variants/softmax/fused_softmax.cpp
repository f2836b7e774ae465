// Scale, mask, upcast, softmax and downcast of the scores in one kernel.
#include "engine/kernels/attention/masked_softmax.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/softmax.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/registry.h"
#include "variants/softmax/device_softmax.h"

namespace decodelab {
namespace {

/// Scores per task: fewer are not worth another thread.
constexpr std::int64_t kScoresOfATask = 16384;

class FusedSoftmax final : public Softmax {
 public:
  at::Tensor forward(const SoftmaxCall& call) const override {
    refuse_bias(call, "fused-softmax");
    const at::Tensor& scores = call.scores;
    if (!scores.is_cpu()) {
      softmax_on_device(call, SoftmaxWorker::block);
      return scores;
    }
    const std::int64_t L = scores.size(4);
    const MaskedSoftmax softmax{.dtype = element_type(scores.scalar_type()),
                                .kv_heads = scores.size(1),
                                .tokens = scores.size(2),
                                .shared_heads = scores.size(3),
                                .keys = L,
                                .past = call.rows.past().data(),
                                .unscale = static_cast<float>(call.unscale),
                                .scores = scores.const_data_ptr(),
                                // Nobody reads the scores again.
                                .weights = scores.mutable_data_ptr()};
    const CpuIsa isa = best_cpu_isa();
    at::parallel_for(0, scores.numel() / L, std::max<std::int64_t>(1, kScoresOfATask / L),
                     [&](std::int64_t first, std::int64_t last) { softmax_rows(softmax, first, last, isa); });
    return scores;
  }

  std::int64_t workspace_bytes(std::int64_t, std::int64_t) const override { return 0; }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.softmax.bind("fused-softmax", [] { return std::make_unique<FusedSoftmax>(); });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "fused-softmax",
    .summary = "Scores are scaled, masked, raised to fp32, normalized and rounded in one kernel.",
    .source = "SantaCoder study (text-generation-inference, bigcode): fused softmax; Megatron-LM",
    .parameters = {},
    .expects = softmax_expected,
    .unsupported = softmax_unsupported,
    .conflict = [](const EnginePlan& plan) { return softmax_conflict("fused-softmax", plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
