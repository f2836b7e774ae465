// Models made from a seed instead of downloaded: their shapes, and weights that are the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace decodelab {

/// What the name of a synthetic model begins with.
inline constexpr std::string_view kSyntheticPrefix = "synthetic:";

/// Returns the names that synthetic_config() knows, with their prefix: synthetic:santacoder, ...
std::vector<std::string> synthetic_names();

/// Returns the configuration behind a name such as synthetic:starcoder, that of the model on the hub; nothing for a
/// name without the prefix `synthetic:`.
///
/// Throws std::invalid_argument with the known names for an unknown one.
std::optional<ModelConfig> synthetic_config(std::string_view name);

/// Describes a distribution that is uniform in [mean - half_width, mean + half_width).
struct SyntheticDistribution {
  float mean = 0;
  float half_width = 0;
};

/// Returns the distribution that a weight is filled from: standard deviation 0.02 (GPTBigCodeConfig's
/// initializer_range) around 1 for the scale of a norm, around 0 for all others.
SyntheticDistribution synthetic_distribution(const WeightSpec& weight);

/// Returns the number of a tensor's random stream: FNV-1a of its name, 64 bits.
std::uint64_t synthetic_stream(std::string_view tensor_name);

/// Writes elements [first_index, first_index + out.size()) of the tensor `tensor_name`, fp32, as fill_uniform()
/// computes them for its stream.
void fill_synthetic(std::span<float> out, std::uint64_t seed, std::string_view tensor_name, std::int64_t first_index,
                    float mean, float half_width);

}  // namespace decodelab
