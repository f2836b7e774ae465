// A decoder alone, of any family: what the model's weights and configuration say, built from the slots of a plan.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/layers/attention_shape.h"
#include "engine/layers/layer_parts.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/rotary.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/layers/transformer.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

struct Layer {
  std::unique_ptr<ResidualNorm> attention_norm;
  std::unique_ptr<Linear> qkv;
  std::unique_ptr<Rotary> rotary;  ///< Null where queries and keys go to attention as they are.
  std::unique_ptr<Linear> attention_out;
  std::unique_ptr<ResidualNorm> attention_post_norm;  ///< These two are null where sums take what they are given.
  std::unique_ptr<ResidualNorm> mlp_norm;
  std::unique_ptr<Mlp> mlp;
  std::unique_ptr<ResidualNorm> mlp_post_norm;
};

class Decoder final : public Transformer {
 public:
  Decoder(const ModelConfig& config, const Weights& weights, const LayerSlots& slots, PreparedWeights& prepared)
      : config_(config), shape_(attention_shape(config)), ranks_(slots.ranks) {
    if (weights.has("positions.weight")) {
      positions_ = weights.at("positions.weight");
    }
    const LayerParts parts(config, weights, slots, prepared);
    embedding_ = parts.embedding();
    const auto post_norm = [&](const std::string& role) { return config.post_norms ? parts.norm(role) : nullptr; };
    const at::TensorOptions options = weights.at("final_norm.weight").options();
    embedding_scale_ = at::scalar_tensor(config.embedding_scale, options).item<double>();
    std::vector<std::shared_ptr<const RotaryTable>> tables;
    for (const RotaryRule& rule : config.rotary) {
      tables.push_back(rotary_table(rule, config.positions, options));
    }
    const auto rotary = [&](std::int64_t layer, const std::string& role) -> std::unique_ptr<Rotary> {
      const LayerRecipe recipe = config.recipe(layer);
      if (recipe.rotary < 0 && !config.qk_norm) {
        return nullptr;
      }
      RotaryWeights turn{.shape = shape_,
                         .table = recipe.rotary < 0 ? nullptr : tables.at(static_cast<std::size_t>(recipe.rotary))};
      if (config.qk_norm) {
        turn.query_norm.emplace(parts.norm_weights(role + "query_norm"));
        turn.key_norm.emplace(parts.norm_weights(role + "key_norm"));
      }
      return slots.rotary(turn);
    };
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string role = "layers." + std::to_string(layer) + ".";
      layers_.push_back({.attention_norm = parts.norm(role + "attention_norm"),
                         .qkv = parts.linear(role + "qkv"),
                         .rotary = rotary(layer, role),
                         .attention_out = parts.linear_to_residual(role + "attention_out"),
                         .attention_post_norm = post_norm(role + "attention_post_norm"),
                         .mlp_norm = parts.norm(role + "mlp_norm"),
                         .mlp = parts.mlp(role),
                         .mlp_post_norm = post_norm(role + "mlp_post_norm")});
    }
    last_norm_ = parts.norm("final_norm");
    head_ = parts.head();
  }

  std::int64_t sites() const override { return config_.layers; }
  AttentionSite site(std::int64_t index) const override {
    const std::unique_ptr<Rotary>& rotary = layers_[static_cast<std::size_t>(index)].rotary;
    return {.layer = index, .writes = rotary != nullptr && rotary->writes_cache()};
  }

  ResidualStream embed(const at::Tensor& token_ids, const ForwardStep& step) const override {
    at::Tensor sum = embedding_->looked_up(token_ids, step.workspace);
    if (embedding_scale_ != 1) {
      sum.mul_(embedding_scale_);
    }
    if (positions_.defined()) {
      const at::Tensor positions = looked_up(positions_, step.rows.position_ids(), step.workspace);
      sum = step.workspace.reuses() ? sum.add_(positions) : sum + positions;
    }
    return {.residual = sum, .addend = {}};
  }

  Projected before(std::int64_t site, ResidualStream& stream, const ForwardStep& step) const override {
    const Layer& parts = layers_[static_cast<std::size_t>(site)];
    const at::Tensor qkv =
        parts.qkv->forward(add_and_norm(*parts.attention_norm, stream, step.workspace), step.workspace);
    const Projected projected{.query = qkv.narrow(2, 0, shape_.query_width()),
                              .key_value = qkv.narrow(2, shape_.query_width(), 2 * shape_.key_width())};
    return parts.rotary == nullptr ? projected : parts.rotary->forward(projected, step);
  }

  void after(std::int64_t site, ResidualStream& stream, const at::Tensor& attended,
             const ForwardStep& step) const override {
    const Layer& parts = layers_[static_cast<std::size_t>(site)];
    stream.addend = in_stage(Stage::projection, [&] { return parts.attention_out->forward(attended, step.workspace); });
    if (parts.attention_post_norm) {
      stream.addend = parts.attention_post_norm->norm(stream.addend, step.workspace);
    }
    const Range range(Stage::mlp);
    if (config_.parallel_residual) {
      const at::Tensor normed = parts.mlp_norm->norm(stream.residual, step.workspace);
      const at::Tensor mlp = parts.mlp->forward(normed, step.workspace);
      stream.addend = step.workspace.reuses() ? stream.addend.add_(mlp) : mlp + stream.addend;
      sum_over_ranks(stream.addend, ranks_);
      return;
    }
    const at::Tensor normed = add_and_norm(*parts.mlp_norm, stream, step.workspace);
    stream.addend = parts.mlp->forward(normed, step.workspace);
    if (parts.mlp_post_norm) {
      stream.addend = parts.mlp_post_norm->norm(stream.addend, step.workspace);
    }
  }

  at::Tensor last_norm(const at::Tensor& hidden, Workspace& workspace) const override {
    return last_norm_->norm(hidden, workspace);
  }
  at::Tensor logits(const at::Tensor& normed, Workspace& workspace) const override {
    return head_->forward(normed, workspace);
  }

  const ModelConfig& config() const override { return config_; }

 private:
  ModelConfig config_;
  AttentionShape shape_;
  Ranks* ranks_;  ///< As in LayerSlots.
  std::unique_ptr<Embedding> embedding_;
  double embedding_scale_ = 1;  ///< Rounded to the model's dtype.
  at::Tensor positions_;        ///< Undefined where positions are not learned.
  std::vector<Layer> layers_;
  std::unique_ptr<ResidualNorm> last_norm_;
  std::unique_ptr<Linear> head_;
};

}  // namespace

std::unique_ptr<Transformer> make_decoder(const ModelConfig& config, const Weights& weights, const LayerSlots& slots,
                                          PreparedWeights& prepared) {
  return std::make_unique<Decoder>(config, weights, slots, prepared);
}

}  // namespace decodelab
