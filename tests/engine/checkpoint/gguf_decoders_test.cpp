// Tests of the values of blocks whose codes are spread over several places, against ggml's own loops written down anew.
#include "engine/checkpoint/gguf_decoders.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernels/half.h"

namespace decodelab {
namespace {

/// Blocks of random bytes whose first numbers of 16 bits, at `halves`, are scales that are no NaN.
std::vector<std::byte> random_block(std::size_t bytes, const std::vector<std::size_t>& halves, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> block(bytes);
  for (std::byte& byte : block) {
    byte = static_cast<std::byte>(generator() & 0xff);
  }
  for (const std::size_t place : halves) {
    const auto scale = static_cast<float>(generator() % 2000) / 700 - 1;
    const std::uint16_t half = to_half(scale);
    std::memcpy(block.data() + place, &half, sizeof half);
  }
  return block;
}

int byte_at(const std::vector<std::byte>& block, std::size_t place) { return std::to_integer<int>(block.at(place)); }

TEST(GgufDecoders, PutTheFifthBitOfQ5AboveTheOtherFour) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto about_zero = random_block(22, {0}, seed);
    const auto from_least = random_block(24, {0, 2}, seed);
    std::array<float, 32> got{};
    dequantize_q5_0(about_zero.data(), got.data());
    for (std::size_t i = 0; i < 32; ++i) {
      const int fifth = byte_at(about_zero, 2 + i / 8) >> (i % 8) & 1;
      const int four = i < 16 ? byte_at(about_zero, 6 + i) & 15 : byte_at(about_zero, 6 + i - 16) >> 4;
      ASSERT_EQ(got[i], gguf_half_at(about_zero.data()) * static_cast<float>(four + 16 * fifth - 16)) << i;
    }
    dequantize_q5_1(from_least.data(), got.data());
    for (std::size_t i = 0; i < 32; ++i) {
      const int fifth = byte_at(from_least, 4 + i / 8) >> (i % 8) & 1;
      const int four = i < 16 ? byte_at(from_least, 8 + i) & 15 : byte_at(from_least, 8 + i - 16) >> 4;
      const double exact = static_cast<double>(gguf_half_at(from_least.data())) * (four + 16 * fifth) +
                           gguf_half_at(from_least.data() + 2);
      ASSERT_EQ(got[i], static_cast<float>(exact)) << i;
    }
  }
}

/// Scale and least of a group of Q4_K and Q5_K, as ggml's get_scale_min_k4() unpacks them.
std::array<int, 2> unpacked(const std::vector<std::byte>& block, std::size_t group) {
  const auto q = [&](std::size_t place) { return byte_at(block, 4 + place); };
  if (group < 4) {
    return {q(group) & 63, q(group + 4) & 63};
  }
  return {(q(group + 4) & 0xF) | ((q(group - 4) >> 6) << 4), (q(group + 4) >> 4) | ((q(group) >> 6) << 4)};
}

TEST(GgufDecoders, UnpackTheScalesOfQ4KAndQ5K) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    for (const bool five : {false, true}) {
      const auto block = random_block(five ? 176 : 144, {0, 2}, seed);
      std::array<float, 256> got{};
      (five ? dequantize_q5_k : dequantize_q4_k)(block.data(), got.data());
      const float d = gguf_half_at(block.data());
      const float m = gguf_half_at(block.data() + 2);
      const std::size_t quants = five ? 48 : 16;
      std::size_t y = 0;
      for (std::size_t pair = 0; pair < 4; ++pair) {
        for (const std::size_t upper : {0, 1}) {
          const auto [scale, least] = unpacked(block, 2 * pair + upper);
          for (std::size_t l = 0; l < 32; ++l, ++y) {
            const int both = byte_at(block, quants + 32 * pair + l);
            const int fifth = five ? byte_at(block, 16 + l) >> (2 * pair + upper) & 1 : 0;
            const int code = (upper == 0 ? both & 15 : both >> 4) + 16 * fifth;
            // Every product is exact; their difference is rounded once.
            const double exact = static_cast<double>(d * static_cast<float>(scale)) * code -
                                 static_cast<double>(m * static_cast<float>(least));
            ASSERT_EQ(got[y], static_cast<float>(exact)) << five << ", " << y;
          }
        }
      }
    }
  }
}

TEST(GgufDecoders, PutTheUpperTwoBitsOfQ6KAboveTheOtherFour) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto block = random_block(210, {208}, seed);
    std::array<float, 256> got{};
    dequantize_q6_k(block.data(), got.data());
    const float d = gguf_half_at(block.data() + 208);
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t l = 0; l < 32; ++l) {
        const int ql = byte_at(block, 64 * n + l);
        const int qr = byte_at(block, 64 * n + l + 32);
        const int qh = byte_at(block, 128 + 32 * n + l);
        const std::array<int, 4> codes{(ql & 15) | (qh & 3) << 4, (qr & 15) | (qh >> 2 & 3) << 4,
                                       ql >> 4 | (qh >> 4 & 3) << 4, qr >> 4 | (qh >> 6 & 3) << 4};
        for (std::size_t part = 0; part < 4; ++part) {
          const auto scale = static_cast<std::int8_t>(byte_at(block, 192 + 8 * n + l / 16 + 2 * part));
          ASSERT_EQ(got.at(128 * n + 32 * part + l),
                    d * static_cast<float>(scale) * static_cast<float>(codes.at(part) - 32));
        }
      }
    }
  }
}

}  // namespace
}  // namespace decodelab
