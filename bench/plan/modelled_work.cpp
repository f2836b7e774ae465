// Closed forms over the shapes of a decoder-only transformer.
#include "bench/plan/modelled_work.h"

namespace decodelab {

ModelledWork times(const ModelledWork& work, std::int64_t count) {
  return {.weight_bytes = work.weight_bytes * count, .kv_bytes = work.kv_bytes * count, .flops = work.flops * count};
}

ModelledWork modelled_work(const ModelConfig& config, const CellRecord& cell, std::int64_t steps) {
  const std::int64_t element_bytes = cell.dtype == "fp32" ? 4 : 2;
  const std::int64_t d = config.hidden_size;
  const std::int64_t kv_width = config.kv_width();
  // Query, key and value; projection; the two matrices of the mlp.
  const std::int64_t layer_matrices = d * (d + kv_width) + d * d + 2 * d * config.intermediate_size;
  // Biases of the same, and two norms with scale and shift.
  const std::int64_t layer_vectors = (d + kv_width) + d + config.intermediate_size + d + 4 * d;
  const std::int64_t head = d * config.vocabulary_size;
  const std::int64_t weights = config.layers * (layer_matrices + layer_vectors) + head + 2 * d;

  ModelledWork work;
  for (std::int64_t step = 0; step < steps; ++step) {
    const bool decode = cell.phase == "decode";
    const std::int64_t tokens = decode ? 1 : cell.length;
    const std::int64_t past = decode ? cell.length + step : 0;
    const std::int64_t rows = cell.batch * tokens;
    const std::int64_t pairs = cell.batch * (tokens * past + tokens * (tokens + 1) / 2);
    work.weight_bytes += (weights + 2 * rows * d) * element_bytes;
    work.kv_bytes += cell.batch * (past + tokens) * kv_width * config.layers * element_bytes;
    work.flops += 2 * (rows * config.layers * layer_matrices + cell.batch * head) + 4 * pairs * d * config.layers;
  }
  return work;
}

StageBytes modelled_stage_bytes(const ModelConfig& config, const CellRecord& cell, std::int64_t past) {
  const std::int64_t element_bytes = cell.dtype == "fp32" ? 4 : 2;
  const std::int64_t d = config.hidden_size;
  const std::int64_t kv_width = config.kv_width();
  const std::int64_t tokens = cell.phase == "decode" ? 1 : cell.length;
  const std::int64_t held = cell.phase == "decode" ? past : 0;
  StageBytes bytes;
  const auto set = [element_bytes](StageBytes::ByStage& of, Stage stage, std::int64_t elements) {
    of[static_cast<std::size_t>(stage)] = elements * element_bytes;
  };
  set(bytes.in_layer, Stage::norm, 4 * d);
  set(bytes.in_layer, Stage::qkv, (d + 1) * (d + kv_width));
  set(bytes.in_layer, Stage::kv_write, cell.batch * tokens * kv_width);
  set(bytes.in_layer, Stage::attention, cell.batch * held * kv_width);
  set(bytes.in_layer, Stage::projection, (d + 1) * d);
  set(bytes.in_layer, Stage::mlp, 2 * d * config.intermediate_size + config.intermediate_size + d);
  set(bytes.outside, Stage::embed, 2 * cell.batch * tokens * d);
  set(bytes.outside, Stage::norm, 2 * d);
  set(bytes.outside, Stage::head, d * config.vocabulary_size);
  return bytes;
}

}  // namespace decodelab
