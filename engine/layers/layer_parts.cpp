// Weights by role, and what all layers do with their residual.
#include "engine/layers/layer_parts.h"

#include <utility>

#include "engine/layers/shared_layers.h"

namespace decodelab {

NormWeights LayerParts::norm_weights(const std::string& role) const {
  return {.kind = config_.norm,
          .weight = weights_.at(role + ".weight"),
          .bias = config_.norm == NormKind::layer ? &weights_.at(role + ".bias") : nullptr,
          .epsilon = config_.norm_epsilon};
}

std::unique_ptr<Linear> LayerParts::linear_to_residual(const std::string& role) const {
  std::unique_ptr<Linear> product = linear(role);
  return slots_.ranks == nullptr || config_.parallel_residual ? std::move(product)
                                                              : summed_over_ranks(std::move(product), *slots_.ranks);
}

std::unique_ptr<Mlp> LayerParts::mlp(const std::string& layer) const {
  std::unique_ptr<Mlp> mlp = slots_.mlp({.up = linear_weights(layer + "up"),
                                         .down = linear_weights(layer + "down"),
                                         .activation = config_.activation,
                                         .gated = config_.gated_mlp},
                                        slots_.linear, prepared_);
  return slots_.ranks == nullptr || config_.parallel_residual ? std::move(mlp)
                                                              : summed_over_ranks(std::move(mlp), *slots_.ranks);
}

std::unique_ptr<Linear> LayerParts::head() const {
  std::unique_ptr<Linear> head = linear(weights_.has("head.weight") ? "head" : "embedding");
  return slots_.ranks == nullptr ? std::move(head) : head_of_ranks(std::move(head), *slots_.ranks);
}

std::unique_ptr<Embedding> LayerParts::embedding() const {
  const std::string role = "embedding.weight";
  return slots_.embedding(
      {.width = weights_.shape(role).at(1),
       .options = [&weights = weights_] { return weights.at("final_norm.weight").options(); },
       .load = [&weights = weights_, role]() -> const at::Tensor& { return weights.at(role); },
       .read_rows = [&weights = weights_, role](const at::Tensor& ids,
                                                const at::Tensor& rows) { weights.read_rows(role, ids, rows); }});
}

LinearWeights LayerParts::linear_weights(const std::string& role) const {
  const std::string matrix = role + ".weight";
  const std::string bias = role + ".bias";
  return {.name = role,
          .outputs = weights_.shape(matrix).at(0),
          .inputs = weights_.shape(matrix).at(1),
          .dtype = weights_.dtype(),
          .bias = weights_.has(bias) ? &weights_.at(bias) : nullptr,
          .blocks = weights_.blocks(matrix),
          .read = [&weights = weights_, matrix] { return weights.read(matrix); },
          .load = [&weights = weights_, matrix]() -> const at::Tensor& { return weights.at(matrix); }};
}

void sum_over_ranks(const at::Tensor& addend, Ranks* ranks) {
  if (ranks != nullptr) {
    ranks->sum(addend);
  }
}

at::Tensor add_and_norm(const ResidualNorm& norm, ResidualStream& stream, Workspace& workspace) {
  if (!stream.addend.defined()) {
    return norm.norm(stream.residual, workspace);
  }
  NormedResidual result = norm.forward(stream.addend, stream.residual, workspace);
  stream = {.residual = std::move(result.residual), .addend = {}};
  return std::move(result.normed);
}

}  // namespace decodelab
