// Scale, mask, upcast, softmax and downcast of the scores in one kernel, one warp per row.
#include "engine/tensor.h"
#include "variants/registry.h"
#include "variants/softmax/device_softmax.h"

namespace decodelab {
namespace {

class WarpSoftmax final : public Softmax {
 public:
  at::Tensor forward(const SoftmaxCall& call) const override {
    refuse_bias(call, "warp-softmax");
    softmax_on_device(call, SoftmaxWorker::warp);
    return call.scores;
  }

  std::int64_t workspace_bytes(std::int64_t, std::int64_t) const override { return 0; }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.softmax.bind("warp-softmax", [] { return std::make_unique<WarpSoftmax>(); });
}

std::string unsupported(const RunsOn& where) {
  if (std::string reason = softmax_unsupported(where); !reason.empty()) {
    return reason;
  }
  return where.device == "cpu" ? "its kernel is for CUDA; fused-softmax has one for a CPU" : "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "warp-softmax",
    .summary = "The masked softmax in one kernel, a warp for each row, which stays in registers.",
    .source = "Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053): scaled_masked_softmax",
    .parameters = {},
    .expects = softmax_expected,
    .unsupported = unsupported,
    .conflict = [](const EnginePlan& plan) { return softmax_conflict("warp-softmax", plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
