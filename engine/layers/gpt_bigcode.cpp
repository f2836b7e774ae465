// GPTBigCode: the model family of SantaCoder, StarCoder and tiny_starcoder_py, its layers built from the slots of a
// plan.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/weights.h"
#include "engine/layers/layer_slots.h"
#include "engine/layers/linear.h"
#include "engine/layers/mlp.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/layers/transformer.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

struct Layer {
  std::unique_ptr<ResidualNorm> norm_1;
  std::unique_ptr<Linear> qkv;
  std::unique_ptr<Linear> projection;
  std::unique_ptr<ResidualNorm> norm_2;
  std::unique_ptr<Mlp> mlp;
};

class GptBigcode final : public Transformer {
 public:
  GptBigcode(const ModelConfig& config, const Weights& weights, const LayerSlots& slots, PreparedWeights& prepared)
      : config_(config),
        token_embedding_(weights.at("transformer.wte.weight")),
        position_embedding_(weights.at("transformer.wpe.weight")) {
    const auto norm = [&](const std::string& name) {
      return slots.residual_norm({.weight = weights.at(name + ".weight"),
                                  .bias = weights.at(name + ".bias"),
                                  .epsilon = config.layer_norm_epsilon});
    };
    const auto affine = [&](const std::string& name) {
      return LinearWeights{.name = name,
                           .weight = weights.source(name + ".weight"),
                           .bias = &weights.at(name + ".bias"),
                           .load = [&weights, name]() -> const at::Tensor& { return weights.at(name + ".weight"); }};
    };
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
      layers_.push_back({.norm_1 = norm(prefix + "ln_1"),
                         .qkv = slots.linear(ordered(affine(prefix + "attn.c_attn"), prepared), prepared),
                         .projection = slots.linear(affine(prefix + "attn.c_proj"), prepared),
                         .norm_2 = norm(prefix + "ln_2"),
                         .mlp = slots.mlp({.up = affine(prefix + "mlp.c_fc"),
                                           .down = affine(prefix + "mlp.c_proj"),
                                           .activation = config.activation},
                                          slots.linear, prepared)});
    }
    last_norm_ = norm("transformer.ln_f");
    head_ = slots.linear({.name = "transformer.wte", .weight = token_embedding_, .bias = nullptr}, prepared);
  }

  ResidualStream embed(const at::Tensor& token_ids, const StepRows& rows, Workspace& workspace) const override {
    if (workspace.reuses()) {
      at::Tensor sum = looked_up(token_embedding_, token_ids, workspace);
      const at::Tensor positions = looked_up(position_embedding_, rows.position_ids(), workspace);
      return {.residual = sum.add_(positions), .addend = {}};
    }
    return {.residual =
                at::embedding(token_embedding_, token_ids) + at::embedding(position_embedding_, rows.position_ids()),
            .addend = {}};
  }

  Projected before_attention(std::int64_t layer, ResidualStream& stream, Workspace& workspace) const override {
    const Layer& parts = layers_[static_cast<std::size_t>(layer)];
    const at::Tensor qkv = parts.qkv->forward(norm(*parts.norm_1, stream, workspace), workspace);
    return {.query = qkv.narrow(2, 0, config_.hidden_size),
            .key_value = qkv.narrow(2, config_.hidden_size, config_.kv_width())};
  }

  void after_attention(std::int64_t layer, ResidualStream& stream, const at::Tensor& attended,
                       Workspace& workspace) const override {
    const Layer& parts = layers_[static_cast<std::size_t>(layer)];
    stream.addend = in_stage(Stage::projection, [&] { return parts.projection->forward(attended, workspace); });
    const Range range(Stage::mlp);
    const at::Tensor normed = norm(*parts.norm_2, stream, workspace);
    stream.addend = parts.mlp->forward(normed, workspace);
  }

  at::Tensor head(const at::Tensor& hidden, Workspace& workspace) const override {
    const Range range(Stage::head);
    count_amount(Amount::lm_head_rows, hidden.size(0));
    return head_->forward(last_norm_->norm(hidden, workspace), workspace);
  }

  const ModelConfig& config() const override { return config_; }

 private:
  /// Multi-head checkpoints order the rows of c_attn per head, [H, (query, key, value), k]; here all queries come
  /// first, then all keys, then all values, as in multi-query checkpoints.
  LinearWeights ordered(const LinearWeights& weights, PreparedWeights& prepared) {
    if (config_.kv_heads == 1) {
      return weights;
    }
    const auto turn = [&](const at::Tensor& rows) {
      return std::make_unique<at::Tensor>(
          rows.unflatten(0, {config_.heads, 3, config_.head_dim}).transpose(0, 1).contiguous().flatten(0, 2));
    };
    const auto add = [&](const std::string& key, const at::Tensor& rows) {
      ordered_.push_back(prepared.prepare<at::Tensor>(key, rows.nbytes(), [&] { return turn(rows); }));
    };
    add("ordered " + weights.name, weights.weight);
    const at::Tensor& weight = *ordered_.back();
    add("ordered bias of " + weights.name, *weights.bias);
    return {.name = "ordered " + weights.name, .weight = weight, .bias = ordered_.back().get()};
  }

  /// Rows of `table` for ids [.., T], without an allocation: [.., T, d].
  static at::Tensor looked_up(const at::Tensor& table, const at::Tensor& ids, Workspace& workspace) {
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
  at::Tensor token_embedding_;
  at::Tensor position_embedding_;
  std::vector<std::shared_ptr<const at::Tensor>> ordered_;  ///< What the layers refer to.
  std::vector<Layer> layers_;
  std::unique_ptr<ResidualNorm> last_norm_;
  std::unique_ptr<Linear> head_;
};

}  // namespace

std::unique_ptr<Transformer> make_gpt_bigcode(const ModelConfig& config, const Weights& weights,
                                              const LayerSlots& slots, PreparedWeights& prepared) {
  return std::make_unique<GptBigcode>(config, weights, slots, prepared);
}

}  // namespace decodelab
