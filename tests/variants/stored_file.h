// GGUF files of small and of larger Llamas, whose matrices are blocks of random codes.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "engine/kernels/half.h"
#include "tests/engine/checkpoint/gguf_writer.h"

namespace decodelab::testing {

struct StoredShape {
  std::uint64_t wide;   ///< The model's width, of four heads, two of which hold keys.
  std::uint64_t inner;  ///< The width of its MLP.
  std::uint64_t layers;
  std::uint64_t tokens;
};

/// Blocks of 256 need whole ones.
inline StoredShape small_stored_shape(GgufType type) {
  const bool of_k = type == GgufType::q4_k;
  return {.wide = of_k ? 256U : 64U, .inner = of_k ? 512U : 96U, .layers = 2, .tokens = 97};
}

/// Rows of blocks of random codes with small scales.
inline std::string random_blocks(GgufType type, std::uint64_t columns, std::uint64_t rows, std::mt19937& generator) {
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

/// Writes a Llama whose matrices are blocks of `type`, and whose values of attention are of `values`; its table of
/// tokens is of Q8_0. Returns the file's path.
inline std::filesystem::path stored_file(GgufType type, GgufType values, const StoredShape& shape) {
  std::mt19937 generator(7);
  GgufWriter writer;
  const auto floating = [&](const std::string& key, float value) {
    writer.key(key, GgufValueType::float32, gguf_bytes(value));
  };
  const auto matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows, GgufType of) {
    writer.tensor(name, {columns, rows}, of, random_blocks(of, columns, rows, generator));
  };
  const auto norm = [&](const std::string& name) {
    std::string ones;
    for (std::uint64_t i = 0; i < shape.wide; ++i) {
      ones += gguf_bytes(1.0F);
    }
    writer.tensor(name, {shape.wide}, GgufType::f32, ones);
  };
  writer.text("general.architecture", "llama").integer("llama.attention.head_count", 4);
  writer.integer("llama.block_count", static_cast<std::uint32_t>(shape.layers));
  writer.integer("llama.embedding_length", static_cast<std::uint32_t>(shape.wide));
  writer.integer("llama.feed_forward_length", static_cast<std::uint32_t>(shape.inner));
  writer.integer("llama.attention.head_count_kv", 2).integer("llama.context_length", 64);
  floating("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  floating("llama.rope.freq_base", 10000);
  writer.integer("tokenizer.ggml.eos_token_id", 0);
  matrix("token_embd.weight", shape.wide, shape.tokens, GgufType::q8_0);
  norm("output_norm.weight");
  for (std::uint64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    norm(block + "attn_norm.weight");
    norm(block + "ffn_norm.weight");
    matrix(block + "attn_q.weight", shape.wide, shape.wide, type);
    matrix(block + "attn_k.weight", shape.wide, shape.wide / 2, type);
    matrix(block + "attn_v.weight", shape.wide, shape.wide / 2, values);
    matrix(block + "attn_output.weight", shape.wide, shape.wide, type);
    matrix(block + "ffn_gate.weight", shape.wide, shape.inner, type);
    matrix(block + "ffn_up.weight", shape.wide, shape.inner, type);
    matrix(block + "ffn_down.weight", shape.inner, shape.wide, type);
  }
  const auto path =
      std::filesystem::temp_directory_path() / ("decodelab-stored-" + std::to_string(shape.wide) + "-" +
                                                gguf_type_name(type) + "-" + gguf_type_name(values) + ".gguf");
  std::ofstream(path, std::ios::binary) << writer.file();
  return path;
}
inline std::filesystem::path stored_file(GgufType type, GgufType values) {
  return stored_file(type, values, small_stored_shape(type));
}

}  // namespace decodelab::testing
