// Tests of the values of GGUF blocks, against values worked out by hand.
#include "engine/checkpoint/gguf_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/gguf_writer.h"
#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

constexpr std::uint16_t kHalfOne = 0x3c00;
constexpr std::uint16_t kHalfMinusTwo = 0xc000;
constexpr std::uint16_t kHalfThird = 0x3555;  // 1365 / 4096.

// From one byte off, so that alignment is not taken for granted, to `elements` floats.
std::vector<float> dequantized(GgufType type, const std::string& blocks, std::size_t elements) {
  std::vector<std::byte> bytes(blocks.size() + 1);
  std::memcpy(bytes.data() + 1, blocks.data(), blocks.size());
  std::vector<float> out(elements, -1.0f);
  dequantize(type, std::span(bytes).subspan(1), out);
  return out;
}

TEST(GgufBlocks, CopiesF32) {
  EXPECT_EQ(dequantized(GgufType::f32, gguf_bytes(1.5f) + gguf_bytes(-1e-40f), 2), (std::vector<float>{1.5f, -1e-40f}));
}

TEST(GgufBlocks, WidensBF16) {
  const std::string stored = gguf_bytes(std::uint16_t{0x3fc0}) + gguf_bytes(std::uint16_t{0xff80});
  EXPECT_EQ(dequantized(GgufType::bf16, stored, 2),
            (std::vector<float>{1.5f, -std::numeric_limits<float>::infinity()}));
}

TEST(GgufBlocks, WidensEveryF16ByItsDefinition) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float value = dequantized(GgufType::f16, gguf_bytes(static_cast<std::uint16_t>(code)), 1)[0];
    const int exponent = static_cast<int>(code >> 10 & 0x1f);
    const int fraction = static_cast<int>(code & 0x3ff);
    ASSERT_EQ(std::signbit(value), code >= 0x8000) << code;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(value), fraction != 0) << code;
      ASSERT_EQ(std::isinf(value), fraction == 0) << code;
      // The fraction of a NaN is kept, and no bit is added.
      ASSERT_EQ(std::bit_cast<std::uint32_t>(value) & 0x7fffffu, static_cast<std::uint32_t>(fraction) << 13) << code;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 15 - 10);
      ASSERT_EQ(std::fabs(value), magnitude) << code;
    }
  }
}

TEST(GgufBlocks, ScalesTheSignedBytesOfQ8_0) {
  std::string block = gguf_bytes(kHalfMinusTwo);
  for (int i = 0; i < 32; ++i) {
    block += static_cast<char>(i * 8 - 128);
  }
  block.back() = 127;
  const std::vector<float> values = dequantized(GgufType::q8_0, block + block, 64);
  for (std::size_t i = 0; i < 64; ++i) {
    const int quant = i % 32 == 31 ? 127 : static_cast<int>(i % 32) * 8 - 128;
    EXPECT_EQ(values[i], -2.0f * static_cast<float>(quant)) << i;
  }
  EXPECT_TRUE(std::signbit(values[16])) << "a zero has the sign of the scale";
}

// Byte i of the quants has i in its low half and 15 - i in its high half.
std::string staircase() {
  std::string quants;
  for (int i = 0; i < 16; ++i) {
    quants += static_cast<char>(i | (15 - i) << 4);
  }
  return quants;
}

TEST(GgufBlocks, TakesTheLowHalvesOfQ4_0FirstAndSubtractsEight) {
  const std::vector<float> values =
      dequantized(GgufType::q4_0, gguf_bytes(kHalfOne) + staircase() + gguf_bytes(kHalfMinusTwo) + staircase(), 64);
  for (std::size_t i = 0; i < 16; ++i) {
    const float step = static_cast<float>(i);
    EXPECT_EQ(values[i], step - 8.0f) << i;
    EXPECT_EQ(values[16 + i], 7.0f - step) << i;
    EXPECT_EQ(values[32 + i], 16.0f - 2.0f * step) << i;
    EXPECT_EQ(values[48 + i], 2.0f * step - 14.0f) << i;
  }
}

TEST(GgufBlocks, AddsTheLeastValueOfQ4_1) {
  const std::vector<float> values =
      dequantized(GgufType::q4_1, gguf_bytes(kHalfThird) + gguf_bytes(kHalfMinusTwo) + staircase(), 32);
  for (std::size_t i = 0; i < 16; ++i) {
    // Exact in double: the float is the nearest.
    const double third = 1365.0 / 4096.0;
    EXPECT_EQ(values[i], static_cast<float>(third * static_cast<double>(i) - 2.0)) << i;
    EXPECT_EQ(values[16 + i], static_cast<float>(third * static_cast<double>(15 - i) - 2.0)) << i;
  }
}

TEST(GgufBlocks, TakesNoBlocksForNoElements) {
  for (const GgufType type :
       {GgufType::f32, GgufType::f16, GgufType::bf16, GgufType::q8_0, GgufType::q4_0, GgufType::q4_1, GgufType::q5_0,
        GgufType::q5_1, GgufType::q4_k, GgufType::q5_k, GgufType::q6_k}) {
    EXPECT_TRUE(can_dequantize(type));
    EXPECT_TRUE(dequantized(type, "", 0).empty());
  }
}

TEST(GgufBlocks, RefusesSizesThatDoNotFit) {
  const auto refused = [](GgufType type, std::size_t bytes, std::size_t elements) {
    return refusal([&] { dequantized(type, std::string(bytes, '\0'), elements); });
  };
  EXPECT_EQ(refused(GgufType::q8_0, 34, 32), "");
  EXPECT_NE(refused(GgufType::q8_0, 33, 32).find("34 bytes for 32 elements each of Q8_0, got 33 bytes for 32"),
            std::string::npos);
  EXPECT_NE(refused(GgufType::q8_0, 34, 31), "");
  EXPECT_NE(refused(GgufType::q8_0, 34, 64), "");
  EXPECT_NE(refused(GgufType::q4_0, 20, 32), "");
  EXPECT_NE(refused(GgufType::q4_1, 18, 32), "");
  EXPECT_NE(refused(GgufType::f16, 3, 1), "");
  EXPECT_NE(refused(GgufType::f32, 0, 1), "");
}

TEST(GgufBlocks, NamesTheTypesThatItDoesNotRead) {
  const auto refused = [](std::uint32_t type) { return refusal([&] { dequantized(GgufType{type}, "", 0); }); };
  EXPECT_NE(refused(10).find("got Q2_K"), std::string::npos);
  EXPECT_NE(refused(20).find("got IQ4_NL"), std::string::npos);
  EXPECT_NE(refused(28).find("got F64"), std::string::npos);
  EXPECT_NE(refused(4).find("got number 4"), std::string::npos);
  EXPECT_NE(refused(~0u).find("got number 4294967295"), std::string::npos);
  EXPECT_FALSE(can_dequantize(GgufType{10}));
}

TEST(GgufBlocks, KnowsNameAndSizeOfEveryEncodingOnce) {
  int known = 0;
  for (std::uint32_t number = 0; number < 64; ++number) {
    const GgufEncoding* encoding = find_gguf_encoding(GgufType{number});
    if (encoding == nullptr) {
      continue;
    }
    ++known;
    for (std::uint32_t other = 0; other < number; ++other) {
      const GgufEncoding* before = find_gguf_encoding(GgufType{other});
      EXPECT_TRUE(before == nullptr || before->name != encoding->name) << encoding->name;
    }
    EXPECT_EQ(gguf_type_name(GgufType{number}), encoding->name);
  }
  EXPECT_EQ(known, 34);
  EXPECT_EQ(find_gguf_encoding(GgufType{14})->block_bytes, 210);
}

}  // namespace
}  // namespace decodelab
