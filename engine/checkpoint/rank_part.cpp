// Cuts heads, the columns of the MLP and the vocabulary into equal parts.
#include "engine/checkpoint/rank_part.h"

#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

/// Returns the rank's part of `total` heads, or the one that it shares with other ranks where there are fewer.
IndexRange part_of_heads(std::int64_t heads, const RankPart& part) {
  if (heads < part.ranks) {
    return {.first = part.rank * heads / part.ranks, .count = 1};
  }
  const std::int64_t count = heads / part.ranks;
  return {.first = part.rank * count, .count = count};
}

IndexRange scaled(const IndexRange& range, std::int64_t factor, std::int64_t offset = 0) {
  return {.first = offset + range.first * factor, .count = range.count * factor};
}

std::vector<IndexRange> part_of_columns(const ModelConfig& config, const RankPart& part, std::int64_t copies) {
  const std::int64_t count = config.intermediate_size / part.ranks;
  std::vector<IndexRange> ranges;
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    ranges.push_back({.first = copy * config.intermediate_size + part.rank * count, .count = count});
  }
  return ranges;
}

/// Returns the part of a role without `.weight` or `.bias`, and without the layer before it, by outputs.
std::optional<std::vector<IndexRange>> cut_outputs(const ModelConfig& config, std::string_view name,
                                                   const RankPart& part) {
  const std::int64_t k = config.head_dim;
  const IndexRange queries = scaled(part_of_heads(config.heads, part), k);
  if (name == "qkv") {
    std::vector<IndexRange> ranges{queries};
    for (const IndexRange& of_keys : kv_cut(config, part).ranges) {
      ranges.push_back({.first = config.query_width() + of_keys.first, .count = of_keys.count});
    }
    return ranges;
  }
  if (name == "cross_query") {
    return std::vector{queries};
  }
  if (name == "cross_key_value") {
    return kv_cut(config, part).ranges;
  }
  if (name == "up") {
    return part_of_columns(config, part, config.gated_mlp ? 2 : 1);
  }
  if (name == "head") {
    return std::vector{head_rows(config, part)};
  }
  return std::nullopt;
}

/// Returns the part of a role that ends in a sum over ranks, by inputs.
std::optional<std::vector<IndexRange>> cut_inputs(const ModelConfig& config, std::string_view name,
                                                  const RankPart& part) {
  if (name == "attention_out" || name == "cross_out") {
    return std::vector{scaled(part_of_heads(config.heads, part), config.head_dim)};
  }
  if (name == "down") {
    return part_of_columns(config, part, 1);
  }
  return std::nullopt;
}

}  // namespace

std::int64_t WeightCut::count() const {
  return std::accumulate(ranges.begin(), ranges.end(), std::int64_t{0},
                         [](std::int64_t sum, const IndexRange& range) { return sum + range.count; });
}

std::string reason_against_ranks(const ModelConfig& config, std::int64_t ranks) {
  if (ranks < 1) {
    return fmt::format("a model is shared by at least 1 rank, got {}", ranks);
  }
  if (config.heads % ranks != 0) {
    return fmt::format("the model has {} heads, which {} ranks cannot share evenly: take a divisor of {}", config.heads,
                       ranks, config.heads);
  }
  if (config.kv_heads % ranks != 0 && ranks % config.kv_heads != 0) {
    return fmt::format(
        "the model has {} key heads, which {} ranks can neither share evenly nor hold one of each: take a divisor or a "
        "multiple of {}",
        config.kv_heads, ranks, config.kv_heads);
  }
  if (config.intermediate_size % ranks != 0) {
    return fmt::format("the model's MLP has {} columns, which {} ranks cannot share evenly", config.intermediate_size,
                       ranks);
  }
  return "";
}

ModelConfig part_config(const ModelConfig& config, const RankPart& part) {
  if (const std::string reason = reason_against_ranks(config, part.ranks); !reason.empty()) {
    throw std::invalid_argument(reason);
  }
  ModelConfig own = config;
  own.heads = part_of_heads(config.heads, part).count;
  own.kv_heads = part_of_heads(config.kv_heads, part).count;
  own.intermediate_size = config.intermediate_size / part.ranks;
  return own;
}

WeightCut kv_cut(const ModelConfig& config, const RankPart& part) {
  const IndexRange heads = part_of_heads(config.kv_heads, part);
  return {.axis = 0, .ranges = {scaled(heads, config.head_dim), scaled(heads, config.head_dim, config.kv_width() / 2)}};
}

IndexRange head_rows(const ModelConfig& config, const RankPart& part) {
  const std::int64_t first = part.rank * config.vocabulary_size / part.ranks;
  return {.first = first, .count = (part.rank + 1) * config.vocabulary_size / part.ranks - first};
}

std::optional<WeightCut> weight_cut(const ModelConfig& config, std::string_view role, const RankPart& part) {
  const std::size_t dot = role.rfind('.');
  const std::string_view kind = role.substr(dot + 1);
  const std::string_view place = role.substr(0, dot);
  const std::string_view name = place.substr(place.rfind('.') + 1);  // All of it where there is no layer.
  if (part.whole()) {
    return std::nullopt;
  }
  if (name == "relative_bias") {
    return WeightCut{.axis = 1, .ranges = {part_of_heads(config.heads, part)}};
  }
  if (const auto ranges = cut_outputs(config, name, part)) {
    return WeightCut{.axis = 0, .ranges = *ranges};
  }
  if (const auto ranges = cut_inputs(config, name, part)) {
    if (kind == "weight") {
      return WeightCut{.axis = 1, .ranges = *ranges};
    }
    return part.rank == 0 ? std::nullopt : std::optional(WeightCut{.axis = 0, .ranges = {}});
  }
  return std::nullopt;
}

}  // namespace decodelab
