// Slots, proof and limits of the variants on libtorch's fused attention kernels.
#include "variants/prefill_attention/sdpa_variant.h"

#include "engine/layers/attention.h"
#include "variants/attention_limits.h"

namespace decodelab {
namespace {

constexpr std::int64_t kMostCudnnHeadDim = 128;
constexpr std::int64_t kCudnnHeadMultiple = 8;

std::string limit_of(SdpaKernel kernel, const RunsOn& where) {
  const bool cpu = where.device == "cpu";
  if (std::string reason = cpu ? "" : plain_attention_unsupported(where.config); !reason.empty()) {
    return reason;
  }
  const bool fp32 = where.dtype == ElementType::float32;
  switch (kernel) {
    case SdpaKernel::flash: return !cpu && fp32 ? "flash attention on CUDA takes fp16 and bf16 only, not fp32" : "";
    case SdpaKernel::efficient: return cpu ? "its kernel is for CUDA" : "";
    case SdpaKernel::cudnn:
      if (cpu) {
        return "its kernel is for CUDA";
      }
      if (fp32) {
        return "cuDNN's attention takes fp16 and bf16 only, not fp32";
      }
      return where.config.head_dim > kMostCudnnHeadDim || where.config.head_dim % kCudnnHeadMultiple != 0
                 ? "cuDNN's attention takes heads of at most 128 elements, a multiple of 8"
                 : "";
  }
  return "";
}

}  // namespace

std::int64_t fused_attention_calls(const CountedSteps& counted) {
  const ModelConfig& config = counted.config;
  if (!config.encoder) {
    return config.layers;
  }
  // The decoder takes a step in both phases, with two attentions a layer. That with a bias split-kv-decode leaves to
  // libtorch.
  const std::string& decode = counted.plan.decode_attention.variant();
  const std::int64_t of_layer = decode.empty() ? 0 : decode == "split-kv-decode" ? 1 : 2;
  return (counted.phase == Phase::prefill ? config.encoder->layers : 0) + of_layer * config.layers;
}

Variant sdpa_variant(const SdpaVariant& described) {
  return {
      .name = described.name,
      .summary = described.summary,
      .source = described.source,
      .parameters = {},
      .needs = {},
      .expects = [phase = described.phase, kernel = described.kernel](const CountedSteps& counted,
                                                                      const Parameters&) -> std::vector<Expectation> {
        if (counted.phase != phase) {
          return {};
        }
        return {{sdpa_operator(kernel, counted.device == "cpu"), fused_attention_calls(counted) * counted.steps}};
      },
      .unsupported = [kernel = described.kernel](const RunsOn& where) { return limit_of(kernel, where); },
      .conflict = {},
      .apply =
          [name = described.name, phase = described.phase, kernel = described.kernel](EnginePlan& plan,
                                                                                      const Parameters&) {
            auto& slot = phase == Phase::prefill ? plan.prefill_attention : plan.decode_attention;
            slot.bind(name, [name, kernel](const AttentionShape& shape, const SoftmaxFactory&) {
              return make_sdpa_attention(shape, kernel, name);
            });
          },
  };
}

}  // namespace decodelab
