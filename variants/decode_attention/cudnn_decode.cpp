// Decode attention by cuDNN's kernel.
#include "engine/layers/attention.h"
#include "engine/layers/sdpa_attention.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.decode_attention.bind("cudnn-decode", [](const ModelConfig& config, const SoftmaxFactory&) {
    return make_sdpa_attention(config, SdpaKernel::cudnn, "cudnn-decode");
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != "decode") {
    return {};
  }
  return {{sdpa_operator(SdpaKernel::cudnn, counted.device == "cpu"), counted.config.layers * counted.steps}};
}

std::string unsupported(const RunsOn& where) {
  if (where.device == "cpu") {
    return "its kernel is for CUDA";
  }
  if (where.dtype == ElementType::float32) {
    return "cuDNN's attention takes fp16 and bf16 only, not fp32";
  }
  // cuDNN's kernels read heads of at most 128 elements, a multiple of 8.
  return where.config.head_dim > 128 || where.config.head_dim % 8 != 0
             ? "cuDNN's attention takes heads of at most 128 elements, a multiple of 8"
             : "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "cudnn-decode",
    .summary = "Decode attention by cuDNN's fused kernel, which plans anew for each number of keys.",
    .source = "NVIDIA cuDNN's scaled dot product attention",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
