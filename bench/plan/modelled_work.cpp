// Sums over the weights of a model by role, and closed forms of what attention moves.
#include "bench/plan/modelled_work.h"

#include <numeric>
#include <string_view>

namespace decodelab {
namespace {

/// Where a weight is read: in which stage, in a layer or outside of all.
struct WeightPlace {
  Stage stage;
  bool in_layer;
};

WeightPlace place_of(std::string_view role) {
  if (!role.starts_with("layers.")) {
    return {.stage = role.starts_with("final_norm") ? Stage::norm : Stage::head, .in_layer = false};
  }
  const auto is = [&](std::string_view part) { return role.find(part) != std::string_view::npos; };
  if (is(".attention_norm.") || is(".mlp_norm.")) {
    return {.stage = Stage::norm, .in_layer = true};
  }
  if (is(".qkv.") || is(".query_norm.") || is(".key_norm.")) {
    return {.stage = Stage::qkv, .in_layer = true};
  }
  return {.stage = is(".attention_out.") ? Stage::projection : Stage::mlp, .in_layer = true};
}

/// What a model's weights come to. Embeddings are looked up, not read as a whole, unless the head is one of them.
struct WeightSums {
  StageBytes elements;              ///< Of one layer and of what is outside; in elements, not bytes.
  std::int64_t layer_matrices = 0;  ///< Elements of the matrices of one layer.
  std::int64_t tables = 0;          ///< Embeddings that a token is looked up in.
};

WeightSums sums_of(const ModelConfig& config) {
  WeightSums sums;
  for (const RoleSpec& role : weight_roles(config)) {
    const bool of_other_layer = role.role.starts_with("layers.") && !role.role.starts_with("layers.0.");
    if (of_other_layer) {
      continue;
    }
    const bool looked_up = role.role == "embedding.weight" || role.role == "positions.weight";
    sums.tables += looked_up ? 1 : 0;
    if (looked_up && !(config.tied_head && role.role == "embedding.weight")) {
      continue;
    }
    std::int64_t elements = 1;
    for (const std::int64_t size : role.shape) {
      elements *= size;
    }
    const WeightPlace place = place_of(role.role);
    (place.in_layer ? sums.elements.in_layer : sums.elements.outside)[static_cast<std::size_t>(place.stage)] +=
        elements;
    sums.layer_matrices += place.in_layer && role.shape.size() == 2 ? elements : 0;
  }
  return sums;
}

std::int64_t sum_of(const StageBytes::ByStage& stages) {
  return std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
}

}  // namespace

ModelledWork times(const ModelledWork& work, std::int64_t count) {
  return {.weight_bytes = work.weight_bytes * count, .kv_bytes = work.kv_bytes * count, .flops = work.flops * count};
}

ModelledWork modelled_work(const ModelConfig& config, const CellRecord& cell, std::int64_t steps) {
  const std::int64_t element_bytes = cell.dtype == "fp32" ? 4 : 2;
  const WeightSums sums = sums_of(config);
  const std::int64_t weights = config.layers * sum_of(sums.elements.in_layer) + sum_of(sums.elements.outside);
  const std::int64_t head = config.hidden_size * config.vocabulary_size;

  ModelledWork work;
  for (std::int64_t step = 0; step < steps; ++step) {
    const bool decode = cell.phase == "decode";
    const std::int64_t tokens = decode ? 1 : cell.length;
    const std::int64_t past = decode ? cell.length + step : 0;
    const std::int64_t rows = cell.batch * tokens;
    const std::int64_t pairs = cell.batch * (tokens * past + tokens * (tokens + 1) / 2);
    work.weight_bytes += (weights + sums.tables * rows * config.hidden_size) * element_bytes;
    work.kv_bytes += cell.batch * (past + tokens) * config.kv_width() * config.layers * element_bytes;
    work.flops += 2 * (rows * config.layers * sums.layer_matrices + cell.batch * head) +
                  4 * pairs * config.query_width() * config.layers;
  }
  return work;
}

StageBytes modelled_stage_bytes(const ModelConfig& config, const CellRecord& cell, std::int64_t past) {
  const std::int64_t element_bytes = cell.dtype == "fp32" ? 4 : 2;
  const std::int64_t tokens = cell.phase == "decode" ? 1 : cell.length;
  const std::int64_t held = cell.phase == "decode" ? past : 0;
  const WeightSums sums = sums_of(config);
  StageBytes bytes = sums.elements;
  const auto set = [](StageBytes::ByStage& of, Stage stage, std::int64_t elements) {
    of[static_cast<std::size_t>(stage)] = elements;
  };
  set(bytes.in_layer, Stage::kv_write, cell.batch * tokens * config.kv_width());
  set(bytes.in_layer, Stage::attention, cell.batch * held * config.kv_width());
  set(bytes.outside, Stage::embed, sums.tables * cell.batch * tokens * config.hidden_size);
  for (StageBytes::ByStage* of : {&bytes.in_layer, &bytes.outside}) {
    for (std::int64_t& elements : *of) {
      elements *= element_bytes;
    }
  }
  return bytes;
}

}  // namespace decodelab
