// A GGUF file's own blocks in products, and its rows in place of a table: the values of the dequantized model within
// the rounding of activations, and the bytes that are held.
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernels/half.h"
#include "engine/kernels/products/coded/coded_matrix.h"
#include "tests/engine/checkpoint/gguf_writer.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

/// The model's width, and that of its MLP: blocks of 256 need whole ones.
constexpr std::uint64_t stored_width(GgufType type) { return type == GgufType::q4_k ? 256 : 64; }
constexpr std::uint64_t stored_inner(GgufType type) { return type == GgufType::q4_k ? 512 : 96; }
constexpr std::uint64_t kStoredTokens = 97;

/// Rows of blocks of random codes with small scales.
std::string random_blocks(GgufType type, std::uint64_t columns, std::uint64_t rows, std::mt19937& generator) {
  const GgufEncoding& encoding = *find_gguf_encoding(type);
  const auto bytes = static_cast<std::size_t>(encoding.block_bytes);
  std::string data;
  for (std::uint64_t block = 0; block < rows * columns / static_cast<std::uint64_t>(encoding.block_elements); ++block) {
    std::string one(bytes, '\0');
    for (char& byte : one) {
      byte = static_cast<char>(generator() & 0xff);
    }
    const float share = 0.5F + static_cast<float>(generator() % 100) / 100;
    const auto put_half = [&](std::size_t place, float value) {
      const std::uint16_t half = to_half(value);
      std::memcpy(one.data() + place, &half, sizeof half);
    };
    switch (type) {
      case GgufType::q4_k:  // up to 63 x 15 times the scale, less up to 63 times the least
        put_half(0, share * 4e-4F);
        put_half(2, share * 3e-3F);
        break;
      case GgufType::q6_k: put_half(208, share * 1e-4F); break;
      case GgufType::q4_1: put_half(2, -7.5F * share * 0.025F); [[fallthrough]];
      default: put_half(0, share * (type == GgufType::q8_0 ? 0.0016F : 0.025F));
    }
    data += one;
  }
  return data;
}

/// A Llama of two layers whose matrices are blocks of `type`, and whose values of attention are of `values`.
std::filesystem::path file_of(GgufType type, GgufType values) {
  std::mt19937 generator(7);
  const std::uint64_t wide = stored_width(type);
  const std::uint64_t inner = stored_inner(type);
  GgufWriter writer;
  const auto floating = [&](const std::string& key, float value) {
    writer.key(key, GgufValueType::float32, gguf_bytes(value));
  };
  const auto matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows, GgufType of) {
    writer.tensor(name, {columns, rows}, of, random_blocks(of, columns, rows, generator));
  };
  const auto norm = [&](const std::string& name) {
    std::string ones;
    for (std::uint64_t i = 0; i < wide; ++i) {
      ones += gguf_bytes(1.0F);
    }
    writer.tensor(name, {wide}, GgufType::f32, ones);
  };
  writer.text("general.architecture", "llama").integer("llama.block_count", 2).integer("llama.embedding_length", wide);
  writer.integer("llama.feed_forward_length", inner).integer("llama.attention.head_count", 4);
  writer.integer("llama.attention.head_count_kv", 2).integer("llama.context_length", 64);
  floating("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  floating("llama.rope.freq_base", 10000);
  writer.integer("tokenizer.ggml.eos_token_id", 0);
  matrix("token_embd.weight", wide, kStoredTokens, GgufType::q8_0);
  norm("output_norm.weight");
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    norm(block + "attn_norm.weight");
    norm(block + "ffn_norm.weight");
    matrix(block + "attn_q.weight", wide, wide, type);
    matrix(block + "attn_k.weight", wide, wide / 2, type);
    matrix(block + "attn_v.weight", wide, wide / 2, values);
    matrix(block + "attn_output.weight", wide, wide, type);
    matrix(block + "ffn_gate.weight", wide, inner, type);
    matrix(block + "ffn_up.weight", wide, inner, type);
    matrix(block + "ffn_down.weight", inner, wide, type);
  }
  const auto path = std::filesystem::temp_directory_path() /
                    ("decodelab-stored-" + gguf_type_name(type) + "-" + gguf_type_name(values) + ".gguf");
  std::ofstream(path, std::ios::binary) << writer.file();
  return path;
}

struct StoredCase {
  GgufType type;
  GgufType values;
};
constexpr StoredCase kStoredCases[] = {{GgufType::q8_0, GgufType::q8_0}, {GgufType::q4_0, GgufType::q4_0},
                                       {GgufType::q4_1, GgufType::q4_1}, {GgufType::q4_0, GgufType::q8_0},
                                       {GgufType::q5_0, GgufType::q8_0}, {GgufType::q4_k, GgufType::q6_k}};

TEST(StoredLinear, GivesTheLogitsOfTheDequantizedModelWithinTheRoundingOfActivations) {
  for (const auto& [type, values] : kStoredCases) {
    for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
      const auto model = Model::load(file_of(type, values), dtype, "cpu");
      const Engine reference = testing::engine_for("causal", model);
      const auto fed = generate(reference, {.prompts = testing::ragged_prompts(), .max_tokens = 9});
      const auto expected = testing::forced_logits(reference, fed, 8);
      for (const std::string arm : {"causal,+stored-linear", "native,-packed-linear,+stored-linear",
                                    "native,-packed-linear,+mapped-embedding,+stored-linear"}) {
        ASSERT_EQ(unsupported_reason(parse_arm(arm), {.config = model->config(), .dtype = dtype, .device = "cpu"}), "");
        const auto got = testing::forced_logits(testing::engine_for(arm, model), fed, 8);
        for (std::size_t step = 0; step < expected.size(); ++step) {
          EXPECT_LT(testing::relative_difference(got[step], expected[step]), 0.1)
              << gguf_type_name(type) << ", " << arm << ", step " << step;
        }
      }
    }
  }
}

TEST(StoredLinear, HoldsTheBytesOfTheBlocksAndNoTable) {
  for (const auto& [type, values] : kStoredCases) {
    const auto model = Model::load(file_of(type, values), ElementType::float32, "cpu");
    const Engine engine = testing::engine_for("native,-packed-linear,+mapped-embedding,+stored-linear", model);
    const auto bytes_of = [](GgufType of, std::uint64_t columns, std::uint64_t rows) {
      // 8 bits of Q8_0 take as much as in the file; outputs are filled up to 16. Q5_0 is held in 8 bits.
      const GgufType held = of == GgufType::q5_0 ? GgufType::q8_0 : of;
      const GgufEncoding& encoding = *find_gguf_encoding(held);
      const std::uint64_t weights = (rows + 15) / 16 * 16 * columns;
      return static_cast<std::int64_t>(weights) / encoding.block_elements * encoding.block_bytes;
    };
    const std::uint64_t wide = stored_width(type);
    const std::uint64_t inner = stored_inner(type);
    const auto& held = engine.coded_bytes();
    EXPECT_EQ(held.at("embedding.weight"), bytes_of(GgufType::q8_0, wide, kStoredTokens));
    EXPECT_EQ(held.at("layers.1.down.weight"), bytes_of(type, inner, wide));
    EXPECT_EQ(held.at("layers.0.up.weight"), bytes_of(type, wide, 2 * inner));
    EXPECT_EQ(held.at("layers.0.qkv.weight"), bytes_of(type, wide, wide + wide / 2) + bytes_of(values, wide, wide / 2));
  }
}

TEST(StoredLinear, IsRefusedWhereTheFileHoldsNoBlocks) {
  const auto model = testing::small_model(testing::small_llama_config());
  EXPECT_NE(unsupported_reason(parse_arm("causal,+stored-linear"),
                               {.config = model->config(), .dtype = ElementType::float32, .device = "cpu"})
                .find("holds no matrix in blocks"),
            std::string::npos);
}

TEST(MappedEmbedding, GivesTheBitsOfTheTable) {
  for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
    for (const auto& model : {Model::load(file_of(GgufType::q8_0, GgufType::q8_0), dtype, "cpu"),
                              testing::small_model(testing::small_llama_config(), dtype),
                              testing::small_model(testing::small_config(), dtype)}) {
      const auto expected =
          generate(testing::engine_for("causal", model),
                   {.prompts = testing::ragged_prompts(), .max_tokens = 5, .keep_prefill_logits = true});
      const auto got = generate(testing::engine_for("causal,+mapped-embedding", model),
                                {.prompts = testing::ragged_prompts(), .max_tokens = 5, .keep_prefill_logits = true});
      for (std::size_t row = 0; row < expected.size(); ++row) {
        EXPECT_EQ(got[row].token_ids, expected[row].token_ids);
        EXPECT_EQ(got[row].prefill_logits, expected[row].prefill_logits);
      }
    }
  }
}

}  // namespace
}  // namespace decodelab
