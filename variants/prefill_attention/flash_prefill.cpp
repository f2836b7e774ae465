// Prefill attention in one kernel that never writes the scores out.
#include "engine/layers/attention.h"
#include "engine/layers/sdpa_attention.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.prefill_attention.bind("flash-prefill", [](const ModelConfig& config, const SoftmaxFactory&) {
    return make_sdpa_attention(config, SdpaKernel::flash, "flash-prefill");
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != "prefill") {
    return {};
  }
  return {{sdpa_operator(SdpaKernel::flash, counted.device == "cpu"), counted.config.layers * counted.steps}};
}

std::string unsupported(const RunsOn& where) {
  if (where.device != "cpu" && where.dtype == ElementType::float32) {
    return "flash attention on CUDA takes fp16 and bf16 only, not fp32";
  }
  return "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "flash-prefill",
    .summary = "Prefill attention in one fused kernel, without the matrix of scores.",
    .source = "Dao 2022 (arXiv:2205.14135); SantaCoder study (text-generation-inference, bigcode), step 1",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
