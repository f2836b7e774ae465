// The reference of attention: scores, softmax and product.
#include "engine/layers/attention.h"

#include "engine/checkpoint/model_config.h"
#include "engine/layers/softmax.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

class MathAttention final : public Attention {
 public:
  MathAttention(const AttentionShape& shape, std::unique_ptr<Softmax> softmax)
      : shape_(shape), softmax_(std::move(softmax)) {}

  at::Tensor forward(const AttentionCall& call) const override {
    const std::int64_t B = call.query.size(0);
    const std::int64_t T = call.query.size(1);
    const std::int64_t L = call.keys.size(1);
    const std::int64_t G = shape_.kv_heads;
    const std::int64_t R = shape_.shared_heads();
    const std::int64_t k = shape_.head_dim;

    const at::Tensor query = call.query.view({B, T, G, R, k}).transpose(1, 2).reshape({B * G, T * R, k});
    const at::Tensor keys = call.keys.unflatten(2, {G, k}).transpose(1, 2).reshape({B * G, L, k});
    const at::Tensor values = call.values.unflatten(2, {G, k}).transpose(1, 2).reshape({B * G, L, k});

    const bool upcast = shape_.softmax_in_fp32 && query.scalar_type() != at::kFloat;
    const double unscale = upcast && shape_.unscales_by_layer ? static_cast<double>(call.layer + 1) : 1.0;
    const double scale = shape_.scale / unscale;

    const at::Tensor scores =
        at::baddbmm(at::empty({1, 1, 1}, query.options()), query, keys.transpose(1, 2), 0, scale).view({B, G, T, R, L});
    at::Tensor bias;
    if (call.bias != nullptr) {
      bias = call.bias->unflatten(1, {G, R}).transpose(2, 3);
    }
    const at::Tensor weights = softmax_
                                   ->forward({.scores = scores,
                                              .bias = bias.defined() ? &bias : nullptr,
                                              .rows = call.rows,
                                              .upcast = upcast,
                                              .unscale = unscale,
                                              .window = call.window,
                                              .workspace = call.workspace})
                                   .view({B * G, T * R, L});
    return at::bmm(weights, values).view({B, G, T, R, k}).transpose(1, 2).reshape({B, T, G * R * k});
  }

  std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys,
                               std::int64_t element_bytes) const override {
    const std::int64_t scores = batch_size * shape_.heads * tokens * keys;
    return scores * element_bytes + softmax_->workspace_bytes(scores, element_bytes);
  }

 private:
  AttentionShape shape_;
  std::unique_ptr<Softmax> softmax_;
};

}  // namespace

AttentionShape attention_shape(const ModelConfig& config) {
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .scale = config.attention_scale(),
          .softmax_in_fp32 = config.attention_softmax_in_fp32,
          .unscales_by_layer = config.scale_attention_softmax_in_fp32,
          .masks = config.has_windows() || config.relative_bias.has_value()};
}

std::unique_ptr<Attention> make_math_attention(const AttentionShape& shape, const SoftmaxFactory& softmax) {
  return std::make_unique<MathAttention>(shape, softmax());
}

}  // namespace decodelab
