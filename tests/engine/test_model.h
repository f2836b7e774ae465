// Small models for tests, and the tolerances that they are held to.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/element_conversion.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/engine.h"
#include "tests/temporary_folder.h"

namespace decodelab::testing {

/// max|a - b| / max|b| that a right implementation stays within, by the model's dtype.
inline double tolerance(ElementType dtype) {
  static const std::map<ElementType, double> table{
      {ElementType::float32, 1e-4}, {ElementType::float16, 5e-3}, {ElementType::bfloat16, 2e-2}};
  return table.at(dtype);
}

inline double relative_difference(const std::vector<float>& got, const std::vector<float>& expected) {
  double worst = 0;
  double largest = 0;
  for (std::size_t index = 0; index < expected.size(); ++index) {
    worst = std::max(worst, std::abs(static_cast<double>(got.at(index)) - expected[index]));
    largest = std::max(largest, std::abs(static_cast<double>(expected[index])));
  }
  return worst / largest;
}

/// 2 layers, 48 wide, 4 heads of 12, vocabulary 97, 64 positions.
inline ModelConfig small_config(bool multi_query = true, Activation activation = Activation::gelu_tanh) {
  ModelConfig config;
  config.family = "gpt_bigcode";
  config.layers = 2;
  config.hidden_size = 48;
  config.heads = 4;
  config.kv_heads = multi_query ? 1 : 4;
  config.head_dim = 12;
  config.intermediate_size = 96;
  config.vocabulary_size = 97;
  config.positions = 64;
  config.activation = activation;
  config.eos_token_id = 0;
  return config;
}

/// A Llama of 2 layers, 48 wide, with 6 heads of 12 that share 2 key heads: heads wider than the model.
inline ModelConfig small_llama_config() {
  ModelConfig config;
  config.family = "llama";
  config.layers = 2;
  config.hidden_size = 48;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 12;
  config.intermediate_size = 80;
  config.vocabulary_size = 97;
  config.positions = 64;
  config.norm = NormKind::rms;
  config.activation = Activation::silu;
  config.gated_mlp = true;
  config.tied_head = false;
  config.scale_attention_softmax_in_fp32 = false;
  config.rotary = {{.theta = 10000, .dims = config.head_dim}};
  config.recipes.assign(2, {.rotary = 0});
  config.eos_token_id = 0;
  return config;
}

/// A Gemma 3 of 2 layers, the first with a window of 5 keys; 48 wide, 6 heads of 12 that share 2 key heads.
inline ModelConfig small_gemma_config() {
  ModelConfig config = small_llama_config();
  config.family = "gemma3_text";
  config.norm = NormKind::rms_plus_one;
  config.activation = Activation::gelu_tanh;
  config.tied_head = true;
  config.qk_norm = config.post_norms = true;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  config.query_scalar = 20;
  config.rotary.push_back({.theta = 500, .dims = config.head_dim});
  config.recipes = {{.rotary = 1, .window = 5}, {.rotary = 0}};
  return config;
}

/// A T5 with an encoder of 3 layers and a decoder of 2, 48 wide, 3 heads of 12.
inline ModelConfig small_t5_config() {
  ModelConfig config;
  config.family = "t5";
  config.layers = 2;
  config.hidden_size = 48;
  config.heads = config.kv_heads = 3;
  config.head_dim = 12;
  config.intermediate_size = 80;
  config.vocabulary_size = 97;
  config.positions = 16384;
  config.norm = NormKind::rms;
  config.activation = Activation::gelu_tanh;
  config.gated_mlp = true;
  config.scale_attention_weights = false;
  config.attention_softmax_in_fp32 = config.scale_attention_softmax_in_fp32 = false;
  config.relative_bias = {.buckets = 8, .most_distance = 20};
  config.encoder = {.layers = 3};
  config.head_scale = 1 / std::sqrt(48.0);
  config.clamps_fp16 = true;
  config.eos_token_id = 1;
  return config;
}

/// Writes a checkpoint of `config` whose weights are ten times as wide as a real initialization, so that two layers
/// tell tokens apart; of a gated MLP four times, since its products of products would make bf16 alone miss tolerances,
/// and three times where norms follow too, which raise what is small.
inline void write_small_checkpoint(const std::filesystem::path& directory, const ModelConfig& config) {
  std::ofstream(directory / "config.json") << config_json(config);
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  const float width = config.post_norms ? 3 : config.gated_mlp ? 4 : 10;
  for (const WeightSpec& spec : weight_specs(config)) {
    std::int64_t count = 1;
    for (const std::int64_t size : spec.shape) {
      count *= size;
    }
    const SyntheticDistribution distribution = synthetic_distribution(spec);
    values.emplace_back(static_cast<std::size_t>(count));
    fill_synthetic(values.back(), 7, spec.name, 0, distribution.mean,
                   (config.encoder ? 1 : width) * distribution.half_width);
  }
  std::size_t index = 0;
  for (const WeightSpec& spec : weight_specs(config)) {
    tensors.push_back({.name = spec.name,
                       .type = ElementType::float32,
                       .shape = spec.shape,
                       .data = std::as_bytes(std::span<const float>(values[index++]))});
  }
  write_safetensors(directory / "model.safetensors", tensors);
}

inline std::shared_ptr<const Model> small_model(const ModelConfig& config, ElementType dtype = ElementType::float32,
                                                const std::string& device = "cpu", const MemoryAtHand& at_hand = {}) {
  const TemporaryFolder folder;
  write_small_checkpoint(folder.path(), config);
  return Model::load(folder.path(), dtype, device, at_hand);
}

/// Prompts of different lengths, the first one the longest.
inline std::vector<std::vector<std::int64_t>> ragged_prompts() {
  return {{5, 17, 96, 3, 22, 41, 8, 60, 12}, {7}, {1, 2, 3, 4}, {90, 80, 70, 60, 50, 40}};
}

}  // namespace decodelab::testing
