// GGUF files as models: their configuration, their names, the order of their rows.
#include "engine/checkpoint/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/gguf_writer.h"
#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

constexpr std::uint64_t kWidth = 8;
constexpr std::uint64_t kHeadDim = 4;

/// A table of rows that are numbered.
std::string numbered(std::uint64_t rows, std::uint64_t width) {
  std::string bytes;
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t i = 0; i < width; ++i) {
      bytes += gguf_bytes(static_cast<float>(row));
    }
  }
  return bytes;
}

/// One layer with two heads for queries and one for keys.
GgufWriter model_of(const std::string& architecture) {
  GgufWriter writer;
  const auto floating = [&](const std::string& key, float value) {
    writer.key(key, GgufValueType::float32, gguf_bytes(value));
  };
  writer.text("general.architecture", architecture).integer(architecture + ".block_count", 1);
  writer.integer(architecture + ".embedding_length", kWidth).integer(architecture + ".feed_forward_length", 8);
  writer.integer(architecture + ".attention.head_count", 2).integer(architecture + ".attention.head_count_kv", 1);
  writer.integer(architecture + ".attention.key_length", kHeadDim).integer(architecture + ".context_length", 64);
  floating(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  floating(architecture + ".rope.freq_base", 100000);
  writer.integer("tokenizer.ggml.eos_token_id", 2);
  writer.tensor("token_embd.weight", {kWidth, 5}, GgufType::f32, numbered(5, kWidth));
  writer.tensor("blk.0.attn_q.weight", {kWidth, 8}, GgufType::f32, numbered(8, kWidth));
  return writer;
}

std::vector<float> first_of_rows(const StoredTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]));
  if (tensor.blocks) {
    tensor.blocks->dequantize_rows(0, tensor.blocks->rows(), values);
  } else {
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  std::vector<float> firsts;
  for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(tensor.shape[1])) {
    firsts.push_back(values[at]);
  }
  return firsts;
}

/// Llama 3's table for heads of 64 and a theta of 100,000, as its converter computes it.
std::vector<float> stretch_table(float factor) {
  std::vector<float> table;
  for (int pair = 0; pair < 32; ++pair) {
    const double wave = 2 * std::numbers::pi * std::pow(100000.0, pair / 32.0);
    const double smooth = (8192 / wave - 1) / (4 - 1);
    table.push_back(static_cast<float>(wave < 8192.0 / 4 ? 1
                                       : wave > 8192.0   ? factor
                                                         : 1 / ((1 - smooth) / factor + smooth)));
  }
  return table;
}

std::string bytes_of(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    bytes += gguf_bytes(value);
  }
  return bytes;
}

TEST(GgufModel, IsConfiguredByItsMetadata) {
  const auto bytes = gguf_copy(model_of("llama").file());
  const ModelConfig config = gguf_model_config(parse_gguf(bytes, "x.gguf"));
  EXPECT_EQ(config.family, "llama");
  EXPECT_EQ(config.layers, 1);
  EXPECT_EQ(config.heads, 2);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.vocabulary_size, 5);
  EXPECT_EQ(config.positions, 64);
  EXPECT_EQ(config.eos_token_id, 2);
  EXPECT_TRUE(config.tied_head);
  EXPECT_FLOAT_EQ(static_cast<float>(config.norm_epsilon), 1e-5f);
  EXPECT_EQ(config.rotary.front().theta, 100000);
  EXPECT_EQ(config.rotary.front().scaling, RotaryScaling::none);
}

TEST(GgufModel, OfLlamaHasRowsOfQueriesInPairsAndOfQwenAsTheyAre) {
  for (const std::string architecture : {"llama", "qwen2"}) {
    const auto bytes = gguf_copy(model_of(architecture).file());
    const GgufFile file = parse_gguf(bytes, "x.gguf");
    const auto tensors = gguf_tensors(file, gguf_model_config(file));
    EXPECT_EQ(tensors.at("model.embed_tokens.weight").dtype, "F32");
    EXPECT_EQ(first_of_rows(tensors.at("model.layers.0.self_attn.q_proj.weight")),
              architecture == "llama" ? (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7})
                                      : (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST(GgufModel, FindsLlama3sFactorInItsTable) {
  const auto rule_of = [](const std::vector<float>& table) {
    GgufWriter writer = model_of("llama");
    writer.tensor("rope_freqs.weight", {table.size()}, GgufType::f32, bytes_of(table));
    const auto bytes = gguf_copy(writer.file());
    const GgufFile file = parse_gguf(bytes, "x.gguf");
    EXPECT_FALSE(gguf_tensors(file, gguf_model_config(file)).contains("rope_freqs.weight"));
    return gguf_model_config(file).rotary.front();
  };
  const RotaryRule rule = rule_of(stretch_table(8));
  EXPECT_EQ(rule.scaling, RotaryScaling::llama3);
  EXPECT_FLOAT_EQ(static_cast<float>(rule.factor), 8);
  EXPECT_EQ(rule.original_positions, 8192);
  std::vector<float> other = stretch_table(8);
  other[20] *= 1.01f;
  EXPECT_TRUE(says(refusal([&] { rule_of(other); }), {"rope_freqs.weight"}));
}

TEST(GgufModel, IsRefusedWhereNoFamilyHasItsArchitectureOrAKeyIsMissing) {
  const auto refused = [](const GgufWriter& writer) {
    const auto bytes = gguf_copy(writer.file());
    return refusal([&] { gguf_model_config(parse_gguf(bytes, "x.gguf")); });
  };
  EXPECT_TRUE(says(refused(model_of("mamba")), {"llama", "'mamba'"}));
  GgufWriter bare;
  bare.text("general.architecture", "llama");
  EXPECT_TRUE(says(refused(bare), {"llama.block_count"}));
  EXPECT_TRUE(says(refused(GgufWriter()), {"general.architecture"}));
}

TEST(GgufModel, MayNotStoreAWeightTwice) {
  GgufWriter writer = model_of("llama");
  writer.tensor("model.embed_tokens.weight", {kWidth, 5}, GgufType::f32, numbered(5, kWidth));
  const auto bytes = gguf_copy(writer.file());
  const GgufFile file = parse_gguf(bytes, "x.gguf");
  EXPECT_TRUE(says(refusal([&] { gguf_tensors(file, gguf_model_config(file)); }), {"so does another"}));
}

}  // namespace
}  // namespace decodelab
