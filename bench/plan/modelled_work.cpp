// Sums over the weights of a model by role, and closed forms of what attention moves.
#include "bench/plan/modelled_work.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

#include "bench/plan/held_tokens.h"

namespace decodelab {
namespace {

/// Where a weight is read: in which stage, in a layer or outside of all.
struct WeightPlace {
  Stage stage;
  bool in_layer;
};

WeightPlace place_of(std::string_view role) {
  const auto is = [&](std::string_view part) { return role.find(part) != std::string_view::npos; };
  if (!role.starts_with("layers.") && !is("relative_bias")) {
    return {.stage = role.starts_with("final_norm") ? Stage::norm : Stage::head, .in_layer = false};
  }
  if (is("_norm.") && !is(".query_norm.") && !is(".key_norm.")) {
    return {.stage = Stage::norm, .in_layer = true};
  }
  if (is("relative_bias")) {
    return {.stage = Stage::attention, .in_layer = false};
  }
  if (is(".qkv.") || is(".query_norm.") || is(".key_norm.") || is(".cross_query.")) {
    return {.stage = Stage::qkv, .in_layer = true};
  }
  return {.stage = is(".attention_out.") || is(".cross_out.") ? Stage::projection : Stage::mlp, .in_layer = true};
}

/// What a model's weights come to, in elements. Embeddings are looked up, not read as a whole, unless the head is one
/// of them.
struct WeightSums {
  StageBytes::ByStage in_layer{};   ///< Of each layer.
  StageBytes::ByStage outside{};    ///< Of what is in no layer.
  std::int64_t layer_matrices = 0;  ///< Elements of the matrices of one layer.
  std::int64_t tables = 0;          ///< Embeddings that a token is looked up in.
  std::int64_t prompt_only = 0;     ///< Of what only an encoded prompt goes through: all layers together.
  std::int64_t prompt_matrices = 0;
};

std::int64_t elements_of(const RoleSpec& role) {
  return std::accumulate(role.shape.begin(), role.shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Returns the layer of a role that begins with `layers.`.
std::size_t layer_of(const std::string& role) {
  return static_cast<std::size_t>(std::stoll(role.substr(std::string_view("layers.").size())));
}

/// Returns whether only tokens of the prompt go through a weight.
bool is_of_prompt(std::string_view role) {
  return role.starts_with("encoder.") || role.find(".cross_key_value.") != std::string_view::npos;
}

WeightSums sums_of(const ModelConfig& config) {
  WeightSums sums;
  for (const RoleSpec& role : weight_roles(config)) {
    const bool of_other_layer = role.role.starts_with("layers.") && !role.role.starts_with("layers.0.");
    const bool of_prompt = is_of_prompt(role.role);
    if (of_other_layer && !of_prompt) {
      continue;
    }
    const bool looked_up = role.role == "embedding.weight" || role.role == "positions.weight";
    sums.tables += looked_up ? 1 : 0;
    if (looked_up && !(config.tied_head && role.role == "embedding.weight")) {
      continue;
    }
    const std::int64_t elements = elements_of(role);
    const bool multiplies = role.shape.size() == 2 && !role.role.ends_with("relative_bias.weight");
    if (of_prompt) {
      sums.prompt_only += elements;
      sums.prompt_matrices += multiplies ? elements : 0;
      continue;
    }
    const WeightPlace place = place_of(role.role);
    (place.in_layer ? sums.in_layer : sums.outside)[static_cast<std::size_t>(place.stage)] += elements;
    sums.layer_matrices += place.in_layer && multiplies ? elements : 0;
  }
  return sums;
}

std::int64_t sum_of(const StageBytes::ByStage& stages) {
  return std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
}

/// What the queries of one row see in one layer.
struct Seen {
  std::int64_t keys = 0;   ///< Keys that are read or written, each once.
  std::int64_t pairs = 0;  ///< Of a query and a key.
};

/// `tokens` queries follow `past` keys, and each sees the last `window` of what precedes it and itself; 0: all.
Seen seen_by(std::int64_t tokens, std::int64_t past, std::int64_t window) {
  if (window == 0 || window >= past + tokens) {
    return {.keys = past + tokens, .pairs = tokens * past + tokens * (tokens + 1) / 2};
  }
  // Query t sees min(past + t + 1, window) keys: those before the window is full form a triangle.
  const std::int64_t growing = std::clamp<std::int64_t>(window - past, 0, tokens);
  const std::int64_t pairs = growing * past + growing * (growing + 1) / 2 + (tokens - growing) * window;
  return {.keys = std::min(past, window - 1) + tokens, .pairs = pairs};
}

/// Returns the work of one prefill or decode step of a decoder that attends to an encoded prompt.
ModelledWork work_with_encoder(const ModelConfig& config, const CellRecord& cell, const WeightSums& sums,
                               std::int64_t step) {
  const bool decode = cell.phase == Phase::decode;
  const std::int64_t held = (decode ? held_tokens(config, cell) + step : 0) + 1;
  const std::int64_t prompt = cell.batch * (decode ? 0 : cell.length);  // tokens that the encoder reads
  const std::int64_t weights = config.layers * sum_of(sums.in_layer) + sum_of(sums.outside);
  const std::int64_t head = config.hidden_size * config.vocabulary_size;
  const std::int64_t pairs =
      config.layers * cell.batch * (held + cell.length) + config.encoder->layers * prompt * cell.length;
  return {.weight_bytes =
              weights + (decode ? 0 : sums.prompt_only) + sums.tables * (cell.batch + prompt) * config.hidden_size,
          .kv_bytes = cell.batch * (held + cell.length) * config.kv_width() * config.layers,
          .flops = 2 * (cell.batch * config.layers * sums.layer_matrices + prompt * sums.prompt_matrices +
                        cell.batch * head) +
                   4 * pairs * config.query_width()};
}

ModelledWork work_of_decoder(const ModelConfig& config, const CellRecord& cell, const WeightSums& sums,
                             std::int64_t step, std::int64_t reused) {
  const bool decode = cell.phase == Phase::decode;
  const std::int64_t tokens = decode ? 1 : cell.length - reused;
  const std::int64_t past = decode ? cell.length + step : reused;
  const std::int64_t rows = cell.batch * tokens;
  const std::int64_t weights = config.layers * sum_of(sums.in_layer) + sum_of(sums.outside);
  const std::int64_t head = config.hidden_size * config.vocabulary_size;
  Seen seen;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const Seen here = seen_by(tokens, past, config.recipe(layer).window);
    seen.keys += here.keys;
    seen.pairs += here.pairs;
  }
  return {.weight_bytes = weights + sums.tables * rows * config.hidden_size,
          .kv_bytes = cell.batch * seen.keys * config.kv_width(),
          .flops = 2 * (rows * config.layers * sums.layer_matrices + cell.batch * head) +
                   4 * cell.batch * seen.pairs * config.query_width()};
}

std::int64_t element_bytes_of(const CellRecord& cell) { return cell.dtype == "fp32" ? 4 : 2; }

/// Returns the bytes that a matrix takes less in its code than in the cell's dtype; 0 where it has none.
std::int64_t saved_bytes(const RoleSpec& role, const CellRecord& cell, const CodedBytes& coded) {
  const auto found = coded.find(role.role);
  return found == coded.end() ? 0 : elements_of(role) * element_bytes_of(cell) - found->second;
}

}  // namespace

ModelledWork times(const ModelledWork& work, std::int64_t count) {
  return {.weight_bytes = work.weight_bytes * count, .kv_bytes = work.kv_bytes * count, .flops = work.flops * count};
}

ModelledWork modelled_work(const ModelConfig& config, const CellRecord& cell, std::int64_t steps, std::int64_t reused,
                           const CodedBytes& coded) {
  const WeightSums sums = sums_of(config);
  std::int64_t saved = 0;
  for (const RoleSpec& role : coded.empty() ? std::vector<RoleSpec>{} : weight_roles(config)) {
    saved += cell.phase == Phase::decode && is_of_prompt(role.role) ? 0 : saved_bytes(role, cell, coded);
  }
  ModelledWork total;
  for (std::int64_t step = 0; step < steps; ++step) {
    const ModelledWork work = config.encoder ? work_with_encoder(config, cell, sums, step)
                                             : work_of_decoder(config, cell, sums, step, reused);
    total.weight_bytes += work.weight_bytes * element_bytes_of(cell) - saved;
    total.kv_bytes += work.kv_bytes * element_bytes_of(cell);
    total.flops += work.flops;
  }
  return total;
}

StageBytes modelled_stage_bytes(const ModelConfig& config, const CellRecord& cell, std::int64_t past,
                                const CodedBytes& coded) {
  const std::int64_t tokens = cell.phase == Phase::decode ? 1 : cell.length;
  const std::int64_t held = cell.phase == Phase::decode ? past : 0;
  const WeightSums sums = sums_of(config);
  StageBytes bytes{.layers = std::vector(static_cast<std::size_t>(config.layers), sums.in_layer),
                   .outside = sums.outside};
  const auto set = [](StageBytes::ByStage& of, Stage stage, std::int64_t elements) {
    of[static_cast<std::size_t>(stage)] = elements;
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    StageBytes::ByStage& of = bytes.layers[static_cast<std::size_t>(layer)];
    const std::int64_t read = seen_by(tokens, held, config.recipe(layer).window).keys - tokens;
    set(of, Stage::kv_write, cell.batch * tokens * config.kv_width());
    set(of, Stage::attention, cell.batch * read * config.kv_width());
  }
  set(bytes.outside, Stage::embed, sums.tables * cell.batch * tokens * config.hidden_size);
  const auto in_bytes = [size = element_bytes_of(cell)](StageBytes::ByStage& of) {
    std::ranges::transform(of, of.begin(), [size](std::int64_t elements) { return elements * size; });
  };
  std::ranges::for_each(bytes.layers, in_bytes);
  in_bytes(bytes.outside);
  for (const RoleSpec& role : coded.empty() ? std::vector<RoleSpec>{} : weight_roles(config)) {
    const WeightPlace place = place_of(role.role);
    StageBytes::ByStage& of = place.in_layer ? bytes.layers.at(layer_of(role.role)) : bytes.outside;
    of[static_cast<std::size_t>(place.stage)] -= saved_bytes(role, cell, coded);
  }
  return bytes;
}

}  // namespace decodelab
