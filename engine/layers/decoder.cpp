// A decoder of any family: what the model's weights and configuration say, built from the slots of a plan.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/weights.h"
#include "engine/layers/attention_shape.h"
#include "engine/layers/layer_slots.h"
#include "engine/layers/linear.h"
#include "engine/layers/mlp.h"
#include "engine/layers/prepared_weights.h"
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
  std::unique_ptr<ResidualNorm> mlp_norm;
  std::unique_ptr<Mlp> mlp;
};

class Decoder final : public Transformer {
 public:
  Decoder(const ModelConfig& config, const Weights& weights, const LayerSlots& slots, PreparedWeights& prepared)
      : config_(config), shape_(attention_shape(config)), embedding_(weights.at("embedding.weight")) {
    if (weights.has("positions.weight")) {
      positions_ = weights.at("positions.weight");
    }
    const auto norm_weights = [&](const std::string& role) {
      return NormWeights{.kind = config.norm,
                         .weight = weights.at(role + ".weight"),
                         .bias = config.norm == NormKind::layer ? &weights.at(role + ".bias") : nullptr,
                         .epsilon = config.norm_epsilon};
    };
    const auto norm = [&](const std::string& role) { return slots.residual_norm(norm_weights(role)); };
    std::vector<std::shared_ptr<const RotaryTable>> tables;
    for (const RotaryRule& rule : config.rotary) {
      tables.push_back(rotary_table(rule, config.positions, embedding_.options()));
    }
    const auto rotary = [&](std::int64_t layer, const std::string& role) -> std::unique_ptr<Rotary> {
      const LayerRecipe recipe = config.recipe(layer);
      if (recipe.rotary < 0 && !config.qk_norm) {
        return nullptr;
      }
      RotaryWeights parts{.shape = shape_,
                          .table = recipe.rotary < 0 ? nullptr : tables.at(static_cast<std::size_t>(recipe.rotary))};
      if (config.qk_norm) {
        parts.query_norm.emplace(norm_weights(role + "query_norm"));
        parts.key_norm.emplace(norm_weights(role + "key_norm"));
      }
      return slots.rotary(parts);
    };
    const auto linear = [&](const std::string& role) { return slots.linear(linear_weights(weights, role), prepared); };
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string role = "layers." + std::to_string(layer) + ".";
      layers_.push_back({.attention_norm = norm(role + "attention_norm"),
                         .qkv = linear(role + "qkv"),
                         .rotary = rotary(layer, role),
                         .attention_out = linear(role + "attention_out"),
                         .mlp_norm = norm(role + "mlp_norm"),
                         .mlp = slots.mlp({.up = linear_weights(weights, role + "up"),
                                           .down = linear_weights(weights, role + "down"),
                                           .activation = config.activation,
                                           .gated = config.gated_mlp},
                                          slots.linear, prepared)});
    }
    last_norm_ = norm("final_norm");
    head_ = linear(weights.has("head.weight") ? "head" : "embedding");
  }

  std::int64_t sites() const override { return config_.layers; }

  ResidualStream embed(const at::Tensor& token_ids, const Step& step) const override {
    at::Tensor sum = looked_up(embedding_, token_ids, step.workspace);
    if (positions_.defined()) {
      const at::Tensor positions = looked_up(positions_, step.rows.position_ids(), step.workspace);
      sum = step.workspace.reuses() ? sum.add_(positions) : sum + positions;
    }
    return {.residual = sum, .addend = {}};
  }

  Projected before(std::int64_t site, ResidualStream& stream, const Step& step) const override {
    const Layer& parts = layers_[static_cast<std::size_t>(site)];
    const at::Tensor qkv = parts.qkv->forward(norm(*parts.attention_norm, stream, step.workspace), step.workspace);
    const Projected projected{.query = qkv.narrow(2, 0, shape_.query_width()),
                              .key_value = qkv.narrow(2, shape_.query_width(), 2 * shape_.key_width())};
    return parts.rotary == nullptr ? projected : parts.rotary->forward(projected, step);
  }

  void after(std::int64_t site, ResidualStream& stream, const at::Tensor& attended, const Step& step) const override {
    const Layer& parts = layers_[static_cast<std::size_t>(site)];
    stream.addend = in_stage(Stage::projection, [&] { return parts.attention_out->forward(attended, step.workspace); });
    const Range range(Stage::mlp);
    if (config_.parallel_residual) {
      const at::Tensor normed = parts.mlp_norm->norm(stream.residual, step.workspace);
      const at::Tensor mlp = parts.mlp->forward(normed, step.workspace);
      stream.addend = step.workspace.reuses() ? stream.addend.add_(mlp) : mlp + stream.addend;
      return;
    }
    const at::Tensor normed = norm(*parts.mlp_norm, stream, step.workspace);
    stream.addend = parts.mlp->forward(normed, step.workspace);
  }

  at::Tensor head(const at::Tensor& hidden, Workspace& workspace) const override {
    const Range range(Stage::head);
    count_amount(Amount::lm_head_rows, hidden.size(0));
    return head_->forward(last_norm_->norm(hidden, workspace), workspace);
  }

  const ModelConfig& config() const override { return config_; }

 private:
  /// Returns the weights of a product by its role; the bias is in memory, the matrix is read when it is wanted.
  static LinearWeights linear_weights(const Weights& weights, const std::string& role) {
    const std::string matrix = role + ".weight";
    const std::string bias = role + ".bias";
    return {.name = role,
            .outputs = weights.shape(matrix).at(0),
            .inputs = weights.shape(matrix).at(1),
            .dtype = weights.dtype(),
            .bias = weights.has(bias) ? &weights.at(bias) : nullptr,
            .read = [&weights, matrix] { return weights.read(matrix); },
            .load = [&weights, matrix]() -> const at::Tensor& { return weights.at(matrix); }};
  }

  /// Returns the rows of `table` for ids [.., T]: [.., T, d].
  static at::Tensor looked_up(const at::Tensor& table, const at::Tensor& ids, Workspace& workspace) {
    if (!workspace.reuses()) {
      return at::embedding(table, ids);
    }
    const at::Tensor rows = workspace.allocate({ids.size(0), ids.size(1), table.size(1)}, table.options());
    at::Tensor flat = rows.view({-1, table.size(1)});
    at::index_select_out(flat, table, 0, ids.view(-1));
    return rows;
  }

  /// Adds what is to be added, and returns the norm of the sum.
  static at::Tensor norm(const ResidualNorm& slot, ResidualStream& stream, Workspace& workspace) {
    if (!stream.addend.defined()) {
      return slot.norm(stream.residual, workspace);
    }
    NormedResidual result = slot.forward(stream.addend, stream.residual, workspace);
    stream = {.residual = std::move(result.residual), .addend = {}};
    return std::move(result.normed);
  }

  ModelConfig config_;
  AttentionShape shape_;
  at::Tensor embedding_;
  at::Tensor positions_;  ///< Undefined where positions are not learned.
  std::vector<Layer> layers_;
  std::unique_ptr<ResidualNorm> last_norm_;
  std::unique_ptr<Linear> head_;
};

}  // namespace

std::unique_ptr<Transformer> make_transformer(const ModelConfig& config, const Weights& weights,
                                              const LayerSlots& slots, PreparedWeights& prepared) {
  return std::make_unique<Decoder>(config, weights, slots, prepared);
}

}  // namespace decodelab
