// Feeds damaged GGUF files to their readers: each must be read or refused, and nothing outside be touched.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/byte_alphabet.h"
#include "engine/checkpoint/gguf.h"
#include "engine/checkpoint/gguf_tokenizer.h"
#include "tests/engine/checkpoint/gguf_writer.h"
#include "tests/engine/checkpoint/mutator.h"

namespace decodelab {
namespace {

// In half of the rounds, damage of any kind; in the others a length, a count, an offset or a type that is out of range.
std::string damaged_gguf(const std::string& file, Mutator& mutator) {
  if (mutator.below(2) == 0) {
    return mutator.mutate(file);
  }
  constexpr std::array<std::uint64_t, 14> kNumbers{0,
                                                   1,
                                                   2,
                                                   9,
                                                   12,
                                                   31,
                                                   33,
                                                   256,
                                                   std::uint64_t{1} << 31,
                                                   std::uint64_t{1} << 32,
                                                   std::uint64_t{1} << 61,
                                                   std::uint64_t{1} << 62,
                                                   std::uint64_t{1} << 63,
                                                   ~std::uint64_t{0}};
  std::string damaged = file;
  const std::uint64_t number = kNumbers[mutator.below(kNumbers.size())];
  const std::size_t bytes = mutator.below(2) == 0 ? 4 : 8;
  std::memcpy(damaged.data() + mutator.below(damaged.size() - bytes), &number, bytes);
  return damaged;
}

template <typename Read>
void read_if_of_the_type(Read read) {
  try {
    read();
  } catch (const std::invalid_argument& error) {
    ASSERT_NE(std::string_view(error.what()), "");
  }
}

TEST(Fuzz, GgufFilesAreReadOrRefused) {
  GgufWriter writer;
  writer.text("general.architecture", "llama").integer("general.alignment", 32).integer("llama.block_count", 2);
  writer.key("llama.epsilon", GgufValueType::float32, gguf_bytes(1e-5f)).boolean("flag", true);
  writer.texts("tokens", {"a", "bc", ""})
      .integers("types", {1, 3, 1})
      .key("long", GgufValueType::int64, gguf_bytes(std::int64_t{7}));
  writer.key("nested", GgufValueType::array,
             gguf_bytes(std::uint32_t{9}) + gguf_bytes(std::uint64_t{1}) +
                 gguf_array_bytes(GgufValueType::uint16, std::vector<std::uint16_t>{4, 5}));
  writer.tensor("wte", {32, 2}, GgufType::q8_0, std::string(68, 'q'))
      .tensor("bias", {3}, GgufType::f32, "0123456789ab");
  writer.tensor("h.0", {32, 2, 1}, GgufType::q4_0, std::string(36, 'q'));
  writer.tensor("h.1", {64}, GgufType::q4_1, std::string(40, 'q'))
      .tensor("other", {256}, GgufType{12}, std::string(144, 'q'));
  writer.tensor("half", {2}, GgufType::f16, "abcd").tensor("none", {0, 4}, GgufType::bf16, "");
  fuzz(writer.file(), [](const std::string& whole, Mutator& mutator) {
    const std::vector<std::byte> bytes = gguf_copy(damaged_gguf(whole, mutator));
    const GgufFile file = parse_gguf(bytes, "fuzz.gguf");
    for (const auto& [name, tensor] : file.tensors) {
      const auto begin = static_cast<std::size_t>(tensor.data.data() - bytes.data());
      ASSERT_TRUE(tensor.data.empty() || begin <= bytes.size()) << name;
      ASSERT_TRUE(tensor.data.empty() || tensor.data.size() <= bytes.size() - begin) << name;
      if (can_dequantize(tensor.type)) {
        std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
        dequantize(tensor.type, tensor.data, values);
      }
    }
    for (const auto& [key, value] : file.metadata.values()) {
      read_if_of_the_type([&] { file.metadata.integers(key); });
      read_if_of_the_type([&] { file.metadata.numbers(key); });
      read_if_of_the_type([&] { file.metadata.booleans(key); });
      read_if_of_the_type([&] { file.metadata.texts(key); });
      read_if_of_the_type([&] { file.metadata.number(key); });
    }
  });
}

TEST(Fuzz, GgufTokenizersAreReadOrRefused) {
  std::vector<std::string> tokens;
  for (const char byte : std::string_view("abcd 12<|en>\n\xc3\xa9")) {
    tokens.push_back(to_byte_alphabet(std::string(1, byte)));
  }
  std::vector<std::int32_t> types(tokens.size(), 1);
  for (const char* token : {"ab", "cd", "abcd", "Ġab"}) {
    tokens.emplace_back(token);
    types.push_back(1);
  }
  tokens.emplace_back("<|end|>");
  types.push_back(3);
  GgufWriter writer;
  writer.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", "qwen2")
      .texts("tokenizer.ggml.tokens", tokens);
  writer.integers("tokenizer.ggml.token_type", types);
  writer.texts("tokenizer.ggml.merges", {"a b", "c d", "ab cd", "Ġ ab"}).integer("tokenizer.ggml.eos_token_id", 19);
  const std::string text = "ab abcd 12\nab cd<|end|>\xc3\xa9 ab";
  const std::vector<std::byte> undamaged = gguf_copy(writer.file());
  const GgufTokenizer whole_file = read_gguf_tokenizer(parse_gguf(undamaged, "whole.gguf").metadata);
  ASSERT_EQ(whole_file.tokenizer.decode(whole_file.tokenizer.encode(text), false), text);
  fuzz(writer.file(), [&](const std::string& whole, Mutator& mutator) {
    const std::vector<std::byte> bytes = gguf_copy(damaged_gguf(whole, mutator));
    const GgufTokenizer read = read_gguf_tokenizer(parse_gguf(bytes, "fuzz.gguf").metadata);
    ASSERT_LT(read.eos_token_id, read.tokenizer.size());
    const std::vector<std::int64_t> ids = read.tokenizer.encode(text);
    for (const std::int64_t id : ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, read.tokenizer.size());
    }
    read.tokenizer.decode(ids);
  });
}

TEST(Fuzz, GgufPiecesAreReadOrRefused) {
  GgufWriter writer;
  writer.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "ab", "▁ab", "▁▁"});
  writer.integers("tokenizer.ggml.token_type", {2, 3, 6, 6, 1, 1, 1, 1, 1, 4})
      .floats("tokenizer.ggml.scores", {0, 0, 0, 0, -5, -4, -3, -1, -2, 0});
  writer.boolean("tokenizer.ggml.add_space_prefix", false).integer("tokenizer.ggml.bos_token_id", 1);
  const std::string text = "ab  ab\xc3\xa9<s>a\xff";
  const std::vector<std::byte> undamaged = gguf_copy(writer.file());
  const GgufTokenizer whole_file = read_gguf_tokenizer(parse_gguf(undamaged, "whole.gguf").metadata);
  ASSERT_EQ(whole_file.tokenizer.encode("ab  ab"), (std::vector<std::int64_t>{7, 9, 7}));
  fuzz(writer.file(), [&](const std::string& whole, Mutator& mutator) {
    const std::vector<std::byte> bytes = gguf_copy(damaged_gguf(whole, mutator));
    const GgufTokenizer read = read_gguf_tokenizer(parse_gguf(bytes, "fuzz.gguf").metadata);
    const std::vector<std::int64_t> ids = read.tokenizer.encode(text);
    for (const std::int64_t id : ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, read.tokenizer.size());
    }
    read.tokenizer.decode(ids);
  });
}

}  // namespace
}  // namespace decodelab
