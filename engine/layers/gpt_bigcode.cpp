// GPTBigCode: the model family of SantaCoder, StarCoder and tiny_starcoder_py, as plain functions on tensors.
#include "engine/checkpoint/weights.h"
#include "engine/layers/projected.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/transformer.h"
#include "engine/tensor.h"
#include "profiles/range.h"

#include <string>
#include <vector>

namespace decodelab {
namespace {

struct Affine {
  at::Tensor weight;
  at::Tensor bias;
};

struct Layer {
  Affine norm_1;
  Affine qkv;
  Affine projection;
  Affine norm_2;
  Affine up;
  Affine down;
};

class GptBigcode final : public Transformer {
 public:
  GptBigcode(const ModelConfig& config, const Weights& weights)
      : config_(config),
        token_embedding_(weights.at("transformer.wte.weight")),
        position_embedding_(weights.at("transformer.wpe.weight")),
        last_norm_(affine(weights, "transformer.ln_f")) {
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
      layers_.push_back({.norm_1 = affine(weights, prefix + "ln_1"),
                         .qkv = affine(weights, prefix + "attn.c_attn"),
                         .projection = affine(weights, prefix + "attn.c_proj"),
                         .norm_2 = affine(weights, prefix + "ln_2"),
                         .up = affine(weights, prefix + "mlp.c_fc"),
                         .down = affine(weights, prefix + "mlp.c_proj")});
    }
  }

  at::Tensor embed(const at::Tensor& token_ids, const StepRows& rows) const override {
    return at::embedding(token_embedding_, token_ids) + at::embedding(position_embedding_, rows.position_ids());
  }

  Projected before_attention(std::int64_t layer, const at::Tensor& hidden) const override {
    const Layer& weights = layers_[static_cast<std::size_t>(layer)];
    const at::Tensor qkv = linear(norm(hidden, weights.norm_1), weights.qkv);
    if (config_.kv_heads == 1) {
      return {.query = qkv.narrow(2, 0, config_.hidden_size),
              .key_value = qkv.narrow(2, config_.hidden_size, config_.kv_width())};
    }
    // Multi-head checkpoints order the rows of c_attn per head: [H, (query, key, value), k].
    const at::Tensor parts = qkv.unflatten(2, {config_.heads, 3, config_.head_dim});
    return {.query = parts.select(3, 0).flatten(2),
            .key_value = at::cat({parts.select(3, 1).flatten(2), parts.select(3, 2).flatten(2)}, 2)};
  }

  at::Tensor after_attention(std::int64_t layer, const at::Tensor& hidden, const at::Tensor& attended) const override {
    const Layer& weights = layers_[static_cast<std::size_t>(layer)];
    const at::Tensor residual =
        in_stage(Stage::projection, [&] { return hidden + linear(attended, weights.projection); });
    const Range range(Stage::mlp);
    const at::Tensor up = linear(norm(residual, weights.norm_2), weights.up);
    const at::Tensor activated = at::gelu(up, config_.activation == Activation::gelu_tanh ? "tanh" : "none");
    return residual + linear(activated, weights.down);
  }

  at::Tensor head(const at::Tensor& hidden) const override {
    const Range range(Stage::head);
    count_amount(Amount::lm_head_rows, hidden.size(0));
    return at::linear(norm(hidden, last_norm_), token_embedding_);
  }

  const ModelConfig& config() const override { return config_; }

 private:
  static Affine affine(const Weights& weights, const std::string& name) {
    return {.weight = weights.at(name + ".weight"), .bias = weights.at(name + ".bias")};
  }
  static at::Tensor linear(const at::Tensor& x, const Affine& weights) {
    return at::linear(x, weights.weight, weights.bias);
  }
  at::Tensor norm(const at::Tensor& x, const Affine& weights) const {
    const Range range(Stage::norm);
    return at::layer_norm(x, {config_.hidden_size}, weights.weight, weights.bias, config_.layer_norm_epsilon);
  }

  ModelConfig config_;
  at::Tensor token_embedding_;
  at::Tensor position_embedding_;
  Affine last_norm_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Transformer> make_gpt_bigcode(const ModelConfig& config, const Weights& weights) {
  return std::make_unique<GptBigcode>(config, weights);
}

}  // namespace decodelab
