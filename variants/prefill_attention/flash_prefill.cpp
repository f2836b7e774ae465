// Prefill attention in one kernel that never writes the scores out.
#include "engine/layers/attention.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"
#include "variants/registry.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

namespace decodelab {
namespace {

/// libtorch's CPU kernel works on blocks of at most this many queries and keys a thread, scores in fp32.
constexpr std::int64_t kQueryBlock = 256;
constexpr std::int64_t kKeyBlock = 512;

class FlashPrefill final : public Attention {
 public:
  explicit FlashPrefill(const ModelConfig& config) : config_(config) {}

  at::Tensor forward(const AttentionCall& call) const override {
    const std::int64_t H = config_.heads;
    const std::int64_t k = config_.head_dim;
    // Rows are aligned at their start, so that the causal flag alone is right for every real query of rows of any length. It is aligned
    // at the top left: it would be wrong for queries that follow held keys.
    if (std::ranges::any_of(call.rows.past(), [](std::int64_t past) { return past != 0; }) || call.bias != nullptr) {
      throw std::invalid_argument(
          "flash-prefill attends from position 0 and takes no bias; use the reference's prefill attention here");
    }
    const at::Tensor query = call.query.unflatten(2, {H, k}).transpose(1, 2);
    const at::Tensor keys = heads(call.keys);
    const at::Tensor values = heads(call.values);
    const double scale = config_.scale_attention_weights ? 1.0 / std::sqrt(static_cast<double>(k)) : 1.0;
    // The backend is named, not chosen by libtorch: an arm must run what it says.
    const at::Tensor attended =
        query.is_cpu()
            ? std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(query, keys, values, 0.0, true, {}, scale))
            : std::get<0>(at::_scaled_dot_product_flash_attention(query, keys, values, 0.0, true, false, scale));
    return attended.transpose(1, 2).reshape({query.size(0), query.size(2), H * k});
  }

  std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t,
                               std::int64_t element_bytes) const override {
    const std::int64_t log_sum_exp = batch_size * config_.heads * tokens * 4;
    const std::int64_t blocks = at::get_num_threads() * kQueryBlock * (2 * kKeyBlock + config_.head_dim) * 4;
    return log_sum_exp + blocks + batch_size * tokens * config_.hidden_size * element_bytes;
  }

 private:
  /// [B, L, G * k] -> [B, H, L, k]; key heads are repeated by a stride of 0, never copied.
  at::Tensor heads(const at::Tensor& packed) const {
    const std::int64_t B = packed.size(0);
    const std::int64_t L = packed.size(1);
    const std::int64_t G = config_.kv_heads;
    return packed.unflatten(2, {G, config_.head_dim})
        .transpose(1, 2)
        .unsqueeze(2)
        .expand({B, G, config_.heads / G, L, config_.head_dim})
        .flatten(1, 2);
  }

  ModelConfig config_;
};

std::string unsupported(const RunsOn& where) {
  if (where.device != "cpu" && where.dtype == ElementType::float32) {
    return "flash attention on CUDA takes fp16 and bf16 only, not fp32";
  }
  return "";
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.prefill_attention.bind("flash-prefill",
                              [](const ModelConfig& config) { return std::make_unique<FlashPrefill>(config); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != "prefill") {
    return {};
  }
  const char* const kernel = counted.device == "cpu" ? "op.aten::_scaled_dot_product_flash_attention_for_cpu"
                                                     : "op.aten::_scaled_dot_product_flash_attention";
  return {{kernel, counted.config.layers * counted.steps}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "flash-prefill",
    .summary = "Prefill attention in one fused kernel, without the matrix of scores.",
    .source = "Dao 2022 (arXiv:2205.14135); SantaCoder study (text-generation-inference, bigcode), step 1",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
