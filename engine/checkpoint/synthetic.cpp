// The models that are made from a seed, and how their weights are distributed.
#include "engine/checkpoint/synthetic.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/checkpoint/family.h"
#include "engine/kernels/elementwise/uniform_fill.h"

namespace decodelab {
namespace {

/// A uniform distribution of half width w has the standard deviation w / sqrt(3).
constexpr float kHalfWidths = 1.7320508f;

std::vector<SyntheticModel> synthetic_models() {
  std::vector<SyntheticModel> models;
  for (const Family* family : families()) {
    std::ranges::move(family->synthetic(), std::back_inserter(models));
  }
  return models;
}

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const SyntheticModel& model : synthetic_models()) {
    names.push_back(fmt::format("{}{}", kSyntheticPrefix, model.name));
  }
  return names;
}

std::optional<ModelConfig> synthetic_config(std::string_view name) {
  if (!name.starts_with(kSyntheticPrefix)) {
    return std::nullopt;
  }
  const std::vector<SyntheticModel> models = synthetic_models();
  const auto model = std::ranges::find(models, name.substr(kSyntheticPrefix.size()), &SyntheticModel::name);
  if (model == models.end()) {
    throw std::invalid_argument(
        fmt::format("expected a synthetic model ({}), got {}", fmt::join(synthetic_names(), ", "), in_quotes(name)));
  }
  return model->config;
}

SyntheticDistribution synthetic_distribution(const WeightSpec& weight) {
  return {.mean = weight.scales ? 1.0f : 0.0f, .half_width = weight.deviation * kHalfWidths};
}

std::uint64_t synthetic_stream(std::string_view tensor_name) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a's offset basis and prime for 64 bits.
  for (const char byte : tensor_name) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return hash;
}

void fill_synthetic(std::span<float> out, std::uint64_t seed, std::string_view tensor_name, std::int64_t first_index,
                    float mean, float half_width) {
  fill_uniform(out, seed, synthetic_stream(tensor_name), first_index, mean, half_width);
}

}  // namespace decodelab
