// The shapes of the models that are made from a seed, and how their weights are distributed.
#include "engine/checkpoint/synthetic.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/kernels/elementwise/uniform_fill.h"

namespace decodelab {
namespace {

constexpr std::string_view kPrefix = "synthetic:";
constexpr float kHalfWidth =
    0.02f * 1.7320508f;  // A uniform distribution of half width w has the standard deviation w / sqrt(3).

struct Shape {
  std::string_view name;
  std::int64_t layers;
  std::int64_t hidden_size;
  std::int64_t heads;
  std::int64_t intermediate_size;
  std::int64_t vocabulary_size;
  std::int64_t positions;
  Activation activation;
  std::int64_t eos_token_id;
};

// bigcode/gpt_bigcode-santacoder, bigcode/starcoder and bigcode/tiny_starcoder_py as on the hub; `tiny` is for tests.
constexpr std::array<Shape, 4> kShapes{{
    {"santacoder", 24, 2048, 16, 8192, 49280, 2048, Activation::gelu_tanh, 49152},
    {"starcoder", 40, 6144, 48, 24576, 49152, 8192, Activation::gelu_erf, 0},
    {"tiny-starcoder", 20, 768, 12, 3072, 49152, 8192, Activation::gelu_tanh, 0},
    {"tiny", 4, 256, 4, 1024, 4096, 2048, Activation::gelu_tanh, 0},
}};

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) {
    names.push_back(fmt::format("{}{}", kPrefix, shape.name));
  }
  return names;
}

std::optional<ModelConfig> synthetic_config(std::string_view name) {
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const auto shape = std::ranges::find(kShapes, name.substr(kPrefix.size()), &Shape::name);
  if (shape == kShapes.end()) {
    throw std::invalid_argument(
        fmt::format("expected a synthetic model ({}), got {}", fmt::join(synthetic_names(), ", "), in_quotes(name)));
  }
  return ModelConfig{.family = "gpt_bigcode",
                     .layers = shape->layers,
                     .hidden_size = shape->hidden_size,
                     .heads = shape->heads,
                     .kv_heads = 1,
                     .head_dim = shape->hidden_size / shape->heads,
                     .intermediate_size = shape->intermediate_size,
                     .vocabulary_size = shape->vocabulary_size,
                     .positions = shape->positions,
                     .activation = shape->activation,
                     .eos_token_id = shape->eos_token_id};
}

SyntheticDistribution synthetic_distribution(const WeightSpec& weight) {
  const bool norm = weight.name.find(".ln_") != std::string::npos && weight.name.ends_with(".weight");
  return {.mean = norm ? 1.0f : 0.0f, .half_width = kHalfWidth};
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
