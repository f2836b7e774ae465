// The reference of attention: scores, scale, mask, softmax and product, each an operator of its own.
#include "engine/layers/attention.h"

#include "engine/checkpoint/model_config.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"

#include <cmath>

namespace decodelab {
namespace {

// The lowest finite numbers, not -inf: a query without any key then gives a uniform row instead of NaN. bfloat16's serves fp32 too.
constexpr double kLowestHalf = -65504.0;
constexpr double kLowestBfloat16 = -3.3895313892515355e38;

class MathAttention final : public Attention {
 public:
  explicit MathAttention(const ModelConfig& config) : config_(config) {}

  at::Tensor forward(const AttentionCall& call) const override {
    const std::int64_t B = call.query.size(0);
    const std::int64_t T = call.query.size(1);
    const std::int64_t L = call.keys.size(1);
    const std::int64_t G = config_.kv_heads;
    const std::int64_t R = config_.heads / G;  // query heads that share a key head
    const std::int64_t k = config_.head_dim;

    const at::Tensor query = call.query.view({B, T, G, R, k}).transpose(1, 2).reshape({B * G, T * R, k});
    const at::Tensor keys = call.keys.unflatten(2, {G, k}).transpose(1, 2).reshape({B * G, L, k});
    const at::Tensor values = call.values.unflatten(2, {G, k}).transpose(1, 2).reshape({B * G, L, k});

    const bool upcast = config_.attention_softmax_in_fp32 && query.scalar_type() != at::kFloat;
    const double unscale =
        upcast && config_.scale_attention_softmax_in_fp32 ? static_cast<double>(call.layer + 1) : 1.0;
    const double scale = (config_.scale_attention_weights ? 1.0 / std::sqrt(static_cast<double>(k)) : 1.0) / unscale;

    at::Tensor scores = at::baddbmm(at::empty({1, 1, 1}, query.options()), query, keys.transpose(1, 2), 0, scale);
    scores = scores.view({B, G, T, R, L});
    if (upcast) {
      scores = scores.to(at::kFloat) * unscale;
    }
    if (call.bias != nullptr) {
      scores = scores + call.bias->unflatten(1, {G, R}).transpose(2, 3);
    }
    const at::Tensor visible = call.rows.visible(L).unsqueeze(1).unsqueeze(3);  // [B, 1, T, 1, L]
    scores = at::where(visible, scores, scores.scalar_type() == at::kHalf ? kLowestHalf : kLowestBfloat16);
    const at::Tensor weights = at::softmax(scores, -1).to(query.scalar_type()).view({B * G, T * R, L});
    return at::bmm(weights, values).view({B, G, T, R, k}).transpose(1, 2).reshape({B, T, G * R * k});
  }

  std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys,
                               std::int64_t element_bytes) const override {
    const std::int64_t scores = batch_size * config_.heads * tokens * keys;
    // Scores, masked scores and weights stand side by side; 16-bit scores are raised to fp32 twice (upcast and its product).
    return scores * (element_bytes == 4 ? 3 * 4 : 2 * element_bytes + 3 * 4);
  }

 private:
  ModelConfig config_;
};

}  // namespace

std::unique_ptr<Attention> make_math_attention(const ModelConfig& config) {
  return std::make_unique<MathAttention>(config);
}

}  // namespace decodelab
