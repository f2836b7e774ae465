// Prefill attention by the memory-efficient kernel.
#include "engine/layers/attention.h"
#include "engine/layers/sdpa_attention.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.prefill_attention.bind("efficient-prefill", [](const ModelConfig& config, const SoftmaxFactory&) {
    return make_sdpa_attention(config, SdpaKernel::efficient, "efficient-prefill");
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != "prefill") {
    return {};
  }
  return {{sdpa_operator(SdpaKernel::efficient, counted.device == "cpu"), counted.config.layers * counted.steps}};
}

std::string unsupported(const RunsOn& where) { return where.device == "cpu" ? "its kernel is for CUDA" : ""; }

[[maybe_unused]] const bool registered = register_variant({
    .name = "efficient-prefill",
    .summary = "Prefill attention by the memory-efficient kernel; key heads are copied for every query head.",
    .source = "Rabe and Staats 2021 (arXiv:2112.05682); xFormers",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
