// Tests of the models made from a seed: sizes, the generator's known answers, and that all ways to fill agree.
#include "engine/checkpoint/synthetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernels/philox.h"
#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

TEST(Philox, GivesTheKnownAnswersOfItsAuthors) {
  // Random123, tests/kat_vectors, philox4x32 10.
  const auto words = [](PhiloxWords counter, std::uint64_t key) {
    const PhiloxWords result = philox4x32(counter, key);
    return std::vector<std::uint32_t>(result.word, result.word + 4);
  };
  EXPECT_EQ(words({{0, 0, 0, 0}}, 0), (std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffffffffffff),
            (std::vector<std::uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822),
            (std::vector<std::uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, MapsBitsToTheHalfOpenInterval) {
  EXPECT_EQ(uniform_float(0, 0, 1), 0.0f);
  EXPECT_EQ(uniform_float(0x80000000u, 0, 1), -1.0f);
  EXPECT_EQ(uniform_float(0x7fffffffu, 0, 1), 1.0f - 0x1p-23f);
  EXPECT_EQ(uniform_float(0xffffffffu, 0, 1), -0x1p-23f);
  EXPECT_EQ(uniform_float(0x40000000u, 1, 0.5f), 1.25f);
}

TEST(Synthetic, HasTheShapesOfTheHub) {
  EXPECT_EQ(parameter_count(*synthetic_config("synthetic:santacoder")), 1'124'886'528);
  EXPECT_EQ(parameter_count(*synthetic_config("synthetic:starcoder")), 15'517'456'384);
  EXPECT_EQ(parameter_count(*synthetic_config("synthetic:tiny-starcoder")), 164'144'128);
  EXPECT_EQ(synthetic_config("synthetic:starcoder")->activation, Activation::gelu_erf);
  EXPECT_EQ(synthetic_config("synthetic:santacoder")->eos_token_id, 49152);
  const ModelConfig tiny = *synthetic_config("synthetic:tiny");
  EXPECT_EQ(tiny.layers, 4);
  EXPECT_EQ(tiny.head_dim, 64);
  EXPECT_EQ(tiny.vocabulary_size, 4096);
  EXPECT_EQ(tiny.positions, 2048);
}

TEST(Synthetic, ConfigurationsOfEveryFamilyAreReadAsTheyWereWritten) {
  for (const std::string& name : synthetic_names()) {
    const ModelConfig config = *synthetic_config(name);
    const ModelConfig again = parse_model_config(config_json(config), name);
    EXPECT_EQ(config_json(again), config_json(config)) << name;
    EXPECT_EQ(parameter_count(again), parameter_count(config)) << name;
    EXPECT_EQ(again.rotary, config.rotary) << name;
    EXPECT_EQ(again.attention_scale(), config.attention_scale()) << name;
    EXPECT_EQ(again.embedding_scale, config.embedding_scale) << name;
    EXPECT_EQ(again.head_scale, config.head_scale) << name;
    EXPECT_EQ(again.has_windows(), config.has_windows()) << name;
  }
}

TEST(Synthetic, ListsTheNamesForAnUnknownOne) {
  EXPECT_FALSE(synthetic_config("/models/santacoder").has_value());
  const std::string message = refusal([] { synthetic_config("synthetic:x"); });
  for (const std::string& name : synthetic_names()) {
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TEST(Synthetic, FillsEveryPartWithTheSameBitsAsTheRule) {
  constexpr std::uint64_t kSeed = 0x123456789abcdef0;
  const std::string name = "transformer.h.0.mlp.c_fc.weight";
  // Blocks on both sides of 2^32, where the counter's second word begins to count.
  for (const std::int64_t start : {std::int64_t{0}, (std::int64_t{1} << 34) - 40}) {
    for (std::int64_t shift = 0; shift < 6; ++shift) {
      for (const std::size_t size : {0u, 1u, 3u, 4u, 31u, 32u, 33u, 200u}) {
        std::vector<float> filled(size + 1, 99.0f);
        fill_synthetic(std::span(filled).first(size), kSeed, name, start + shift, 1.0f, 0.03f);
        for (std::size_t i = 0; i < size; ++i) {
          const auto index = static_cast<std::uint64_t>(start + shift) + i;
          const PhiloxWords words = philox4x32(philox_counter(index / 4, synthetic_stream(name)), kSeed);
          const float expected = uniform_float(words.word[index % 4], 1.0f, 0.03f);
          ASSERT_EQ(std::memcmp(&expected, &filled[i], sizeof(float)), 0) << index << " of " << size;
        }
        EXPECT_EQ(filled[size], 99.0f);
      }
    }
  }
}

TEST(Synthetic, KeepsItsValuesFromReleaseToRelease) {
  // A change here changes every cached model: raise kLayoutVersion in synthetic_cache.cpp.
  EXPECT_EQ(synthetic_stream(""), 0xcbf29ce484222325u);
  EXPECT_EQ(synthetic_stream("a"), 0xaf63dc4c8601ec8cu);
  // Made by an independent model of the rule in Python, with exact fractions rounded once.
  const auto bits = [](const char* name, std::int64_t first_index, float mean, float half_width) {
    std::vector<float> values(5);
    fill_synthetic(values, 7, name, first_index, mean, half_width);
    std::vector<std::uint32_t> result(values.size());
    std::ranges::transform(values, result.begin(), [](float value) { return std::bit_cast<std::uint32_t>(value); });
    return result;
  };
  EXPECT_EQ(bits("transformer.wte.weight", 1'000'000'007, 0.0f, 0.5f),
            (std::vector<std::uint32_t>{0xbe856e60u, 0x3ed4d66cu, 0x3e08a3c8u, 0xbdb6c0f0u, 0x3ec0e038u}));
  EXPECT_EQ(bits("transformer.ln_f.weight", 0, 1.0f, 0.03f),
            (std::vector<std::uint32_t>{0x3f82bd17u, 0x3f83b79fu, 0x3f80f683u, 0x3f82cce5u, 0x3f7fc181u}));
}

TEST(Synthetic, DependsOnTheSeedAndTheName) {
  std::set<float> first;
  std::vector<float> values(1);
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (const char* name : {"a", "b", "transformer.wte.weight"}) {
      fill_synthetic(values, seed, name, 0, 0.0f, 1.0f);
      first.insert(values[0]);
    }
  }
  EXPECT_EQ(first.size(), 9u);
}

TEST(Synthetic, HasTheMeanAndTheDeviationItPromises) {
  for (const auto& [name, scales] :
       {std::pair("transformer.wte.weight", false), std::pair("transformer.h.0.ln_1.weight", true),
        std::pair("transformer.h.0.ln_1.bias", false)}) {
    const auto [mean, half_width] = synthetic_distribution({.name = name, .shape = {1}, .scales = scales});
    EXPECT_EQ(mean, scales ? 1.0f : 0.0f) << name;
    constexpr std::size_t kCount = 1 << 20;
    std::vector<float> values(kCount);
    fill_synthetic(values, 3, name, 0, mean, half_width);
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      EXPECT_LE(std::abs(value - mean), half_width * 1.000001f);
      sum += value - mean;
      squares += (value - mean) * static_cast<double>(value - mean);
    }
    // Five standard errors of a mean of 2^20 values, and of their deviation.
    EXPECT_NEAR(sum / kCount, 0, 5 * 0.02 / 1024) << name;
    EXPECT_NEAR(std::sqrt(squares / kCount), 0.02, 5 * 0.02 / 1024) << name;
  }
}

TEST(Synthetic, RefusesANegativeIndex) {
  std::vector<float> values(1);
  EXPECT_THROW(fill_synthetic(values, 0, "a", -1, 0, 1), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
