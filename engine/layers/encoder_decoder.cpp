// An encoder that reads the prompt, and a decoder whose layers attend to its own tokens and to the prompt (T5).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/layers/attention.h"
#include "engine/layers/attention_shape.h"
#include "engine/layers/encoded_prompts.h"
#include "engine/layers/layer_parts.h"
#include "engine/layers/relative_bias.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/transformer.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// The largest number of fp16, and what replaces the largest where a sum overflowed (Hugging Face Transformers).
constexpr double kMostHalf = 65504;
constexpr double kMostHalfAfterOverflow = kMostHalf - 1000;

/// What layers of both stacks have.
struct OwnLayer {
  OwnLayer(const LayerParts& parts, const std::string& role)
      : attention_norm(parts.norm(role + "attention_norm")),
        qkv(parts.linear(role + "qkv")),
        attention_out(parts.linear_to_residual(role + "attention_out")),
        mlp_norm(parts.norm(role + "mlp_norm")),
        mlp(parts.mlp(role)) {}

  std::unique_ptr<ResidualNorm> attention_norm;
  std::unique_ptr<Linear> qkv;
  std::unique_ptr<Linear> attention_out;
  std::unique_ptr<ResidualNorm> mlp_norm;
  std::unique_ptr<Mlp> mlp;
};

/// A layer of the decoder, which attends to the prompt between its own attention and its MLP.
struct DecoderLayer : OwnLayer {
  DecoderLayer(const LayerParts& parts, const std::string& role)
      : OwnLayer(parts, role),
        cross_norm(parts.norm(role + "cross_norm")),
        cross_query(parts.linear(role + "cross_query")),
        cross_key_value(parts.linear(role + "cross_key_value")),
        cross_out(parts.linear_to_residual(role + "cross_out")) {}

  std::unique_ptr<ResidualNorm> cross_norm;
  std::unique_ptr<Linear> cross_query;
  std::unique_ptr<Linear> cross_key_value;
  std::unique_ptr<Linear> cross_out;
};

class EncoderDecoder final : public Transformer {
 public:
  EncoderDecoder(const ModelConfig& config, const Weights& weights, const LayerSlots& slots, PreparedWeights& prepared)
      : config_(config),
        shape_(attention_shape(config)),
        encoder_bias_(*config.relative_bias, weights.at("encoder.relative_bias.weight"), config.positions,
                      /*both_ways=*/true),
        decoder_bias_(*config.relative_bias, weights.at("relative_bias.weight"), config.positions,
                      /*both_ways=*/false) {
    const LayerParts parts(config, weights, slots, prepared);
    embedding_ = parts.embedding();
    for (std::int64_t layer = 0; layer < config.encoder->layers; ++layer) {
      encoder_layers_.emplace_back(parts, "encoder.layers." + std::to_string(layer) + ".");
    }
    encoder_last_norm_ = parts.norm("encoder.final_norm");
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      layers_.emplace_back(parts, "layers." + std::to_string(layer) + ".");
    }
    last_norm_ = parts.norm("final_norm");
    head_ = parts.head();
  }

  std::int64_t sites() const override { return 2 * config_.layers; }
  AttentionSite site(std::int64_t index) const override { return {.layer = index / 2, .crosses = index % 2 == 1}; }

  ResidualStream embed(const at::Tensor& token_ids, const ForwardStep& step) const override {
    return {.residual = embedding_->looked_up(token_ids, step.workspace), .addend = {}};
  }

  Projected before(std::int64_t index, ResidualStream& stream, const ForwardStep& step) const override {
    const DecoderLayer& parts = layers_[static_cast<std::size_t>(site(index).layer)];
    if (site(index).crosses) {
      const at::Tensor normed = add_and_norm(*parts.cross_norm, stream, step.workspace);
      return {.query = parts.cross_query->forward(normed, step.workspace), .key_value = {}};
    }
    return split(parts.qkv->forward(add_and_norm(*parts.attention_norm, stream, step.workspace), step.workspace));
  }

  void after(std::int64_t index, ResidualStream& stream, const at::Tensor& attended,
             const ForwardStep& step) const override {
    const DecoderLayer& parts = layers_[static_cast<std::size_t>(site(index).layer)];
    const bool crosses = site(index).crosses;
    stream.addend = in_stage(Stage::projection, [&] {
      return (crosses ? parts.cross_out : parts.attention_out)->forward(attended, step.workspace);
    });
    clamp(stream, step.workspace);
    if (crosses) {
      run_mlp(parts, stream, step.workspace);
    }
  }

  at::Tensor score_bias(std::int64_t index, std::int64_t keys, const ForwardStep& step) const override {
    return site(index).crosses ? at::Tensor() : decoder_bias_.of(step.rows, keys);
  }

  std::unique_ptr<EncodedPrompts> encode(const at::Tensor& token_ids, const Attention& attention,
                                         const ForwardStep& step) const override {
    const at::Tensor encoded = encoded_tokens(token_ids, attention, step);
    std::vector<at::Tensor> keys_values;
    for (const DecoderLayer& layer : layers_) {
      const Range range(Stage::qkv);
      const at::Tensor of_layer = step.rows.padded(layer.cross_key_value->forward(encoded, step.workspace));
      // They outlive the step: a workspace that takes its tensors back must not have them.
      keys_values.push_back(step.workspace.reuses() ? of_layer.clone() : of_layer);
    }
    return std::make_unique<EncodedPrompts>(std::move(keys_values), step.rows.added());
  }

  at::Tensor last_norm(const at::Tensor& hidden, Workspace& workspace) const override {
    return last_norm_->norm(hidden, workspace);
  }
  at::Tensor logits(const at::Tensor& normed, Workspace& workspace) const override {
    return head_->forward(config_.head_scale == 1 ? normed : normed * config_.head_scale, workspace);
  }

  const ModelConfig& config() const override { return config_; }

 private:
  Projected split(const at::Tensor& qkv) const {
    return {.query = qkv.narrow(2, 0, shape_.query_width()),
            .key_value = qkv.narrow(2, shape_.query_width(), 2 * shape_.key_width())};
  }

  /// Returns the encoder's last norm of its layers' sum, in the shape of the embedded ids.
  at::Tensor encoded_tokens(const at::Tensor& token_ids, const Attention& attention, const ForwardStep& step) const {
    const StepRows& rows = step.rows;
    Workspace& workspace = step.workspace;
    const at::Tensor bias = encoder_bias_.of_each_other(rows.tokens());
    ResidualStream stream = in_stage(Stage::embed, [&] { return embed(token_ids, step); });
    for (std::int64_t layer = 0; layer < config_.encoder->layers; ++layer) {
      const LayerRange range(layer);
      workspace.begin_layer(layer);
      const OwnLayer& parts = encoder_layers_[static_cast<std::size_t>(layer)];
      const Projected packed = in_stage(Stage::qkv, [&] {
        return split(parts.qkv->forward(add_and_norm(*parts.attention_norm, stream, workspace), workspace));
      });
      const at::Tensor attended = in_stage(Stage::attention, [&] {
        const at::Tensor query = rows.padded(packed.query);
        const at::Tensor key_value = rows.padded(packed.key_value);
        return attention.forward({.layer = layer,
                                  .query = query,
                                  .keys = key_value.narrow(2, 0, shape_.key_width()),
                                  .values = key_value.narrow(2, shape_.key_width(), shape_.key_width()),
                                  .rows = rows,
                                  .workspace = workspace,
                                  .bias = &bias});
      });
      stream.addend =
          in_stage(Stage::projection, [&] { return parts.attention_out->forward(rows.packed(attended), workspace); });
      clamp(stream, workspace);
      run_mlp(parts, stream, workspace);
    }
    workspace.end_layers();
    return in_stage(Stage::norm, [&] { return add_and_norm(*encoder_last_norm_, stream, workspace); });
  }

  void run_mlp(const OwnLayer& parts, ResidualStream& stream, Workspace& workspace) const {
    const Range range(Stage::mlp);
    stream.addend = parts.mlp->forward(add_and_norm(*parts.mlp_norm, stream, workspace), workspace);
    clamp(stream, workspace);
  }

  /// Bounds the sum so far, where fp16 cannot hold what the model's training in bf16 gave.
  void clamp(ResidualStream& stream, Workspace& workspace) const {
    if (!config_.clamps_fp16 || stream.residual.scalar_type() != at::kHalf) {
      return;
    }
    const at::Tensor sum = stream.sum(workspace);
    const at::Tensor most = at::where(at::isinf(sum).any(), kMostHalfAfterOverflow, kMostHalf).to(at::kHalf);
    stream = {.residual = at::minimum(at::maximum(sum, -most), most), .addend = {}};
  }

  ModelConfig config_;
  AttentionShape shape_;
  std::unique_ptr<Embedding> embedding_;
  ScoreBias encoder_bias_;
  ScoreBias decoder_bias_;
  std::vector<OwnLayer> encoder_layers_;
  std::unique_ptr<ResidualNorm> encoder_last_norm_;
  std::vector<DecoderLayer> layers_;
  std::unique_ptr<ResidualNorm> last_norm_;
  std::unique_ptr<Linear> head_;
};

}  // namespace

std::unique_ptr<Transformer> make_encoder_decoder(const ModelConfig& config, const Weights& weights,
                                                  const LayerSlots& slots, PreparedWeights& prepared) {
  return std::make_unique<EncoderDecoder>(config, weights, slots, prepared);
}

}  // namespace decodelab
