// Decode attention by the flash kernel, which the study found good for prefill only.
#include "engine/layers/attention.h"
#include "engine/layers/sdpa_attention.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.decode_attention.bind("flash-decode", [](const ModelConfig& config, const SoftmaxFactory&) {
    return make_sdpa_attention(config, SdpaKernel::flash, "flash-decode");
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != "decode") {
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
    .name = "flash-decode",
    .summary = "Decode attention in one fused kernel, without the matrix of scores.",
    .source = "Dao 2022 (arXiv:2205.14135); SantaCoder study (text-generation-inference, bigcode), step 1",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
