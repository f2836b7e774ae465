// Computes values from scales and codes.
#include "engine/checkpoint/gguf_decoders.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "engine/kernels/half.h"

namespace decodelab {
namespace {

constexpr int kGroup = 32;     // Weights with a scale of their own, but for Q6_K.
constexpr int kHalfBytes = 2;  // Scales and least weights of whole blocks are fp16.
constexpr int kGroupsOf256 = 8;

int low_code(std::byte both) { return std::to_integer<int>(both) & 0xf; }
int high_code(std::byte both) { return std::to_integer<int>(both) >> 4; }
int number(std::byte stored) { return std::to_integer<int>(stored); }

std::uint32_t word_at(const std::byte* stored) {
  std::uint32_t word;
  std::memcpy(&word, stored, sizeof word);
  return word;
}

// Products of 11 bits with the bits of a code are exact, so that a compiler that fuses them with a sum changes nothing.
/// Writes 32 weights; `value(code)` is what a code stands for.
template <typename Value>
void fill_of_four(const std::byte* quants, float* out, const Value& value) {
  for (int i = 0; i < kGroup / 2; ++i) {
    out[i] = value(static_cast<float>(low_code(quants[i])));
    out[i + kGroup / 2] = value(static_cast<float>(high_code(quants[i])));
  }
}

template <typename Value>
void fill_of_five(const std::byte* fifth_bits, float* out, const Value& value) {
  const std::uint32_t fifth = word_at(fifth_bits);
  const std::byte* const quants = fifth_bits + sizeof fifth;
  const auto bit = [&](int index) { return static_cast<int>(fifth >> index & 1) << 4; };
  for (int i = 0; i < kGroup / 2; ++i) {
    out[i] = value(static_cast<float>(low_code(quants[i]) | bit(i)));
    out[i + kGroup / 2] = value(static_cast<float>(high_code(quants[i]) | bit(i + kGroup / 2)));
  }
}

/// Returns d * (q - zero) as a function of q.
auto about(float zero, const std::byte* block) {
  return [zero, scale = gguf_half_at(block)](float code) { return scale * (code - zero); };
}
/// Returns d * q + m as a function of q.
auto from_least(const std::byte* block) {
  return [scale = gguf_half_at(block), least = gguf_half_at(block + kHalfBytes)](float code) {
    return scale * code + least;
  };
}

/// Writes 256 weights; `code(group, index)` are those of the groups.
template <typename Code>
void fill_groups(const std::byte* block, float* out, const Code& code) {
  const float scale = gguf_half_at(block);
  const float least = gguf_half_at(block + kHalfBytes);
  for (int group = 0; group < kGroupsOf256; ++group) {
    const SixBits bits = six_bits(block + 2 * kHalfBytes, group);
    const float here = scale * static_cast<float>(bits.scale);
    const float below = least * static_cast<float>(bits.least);
    for (int i = 0; i < kGroup; ++i) {
      out[group * kGroup + i] = here * static_cast<float>(code(group, i)) - below;
    }
  }
}

/// Returns a code of 4 bits of 256: two groups share 32 bytes.
int shared_code(const std::byte* quants, int group, int index) {
  const std::byte both = quants[group / 2 * kGroup + index];
  return group % 2 == 0 ? low_code(both) : high_code(both);
}

}  // namespace

SixBits six_bits(const std::byte* packed, int group) {
  if (group < 4) {
    return {.scale = number(packed[group]) & 63, .least = number(packed[group + 4]) & 63};
  }
  const int both = number(packed[group + 4]);
  return {.scale = (both & 15) | (number(packed[group - 4]) >> 6) << 4,
          .least = both >> 4 | (number(packed[group]) >> 6) << 4};
}

float gguf_half_at(const std::byte* stored) {
  std::uint16_t bits;
  std::memcpy(&bits, stored, sizeof bits);
  return from_half(bits);
}

void dequantize_q8_0(const std::byte* block, float* out) {
  const float scale = gguf_half_at(block);
  for (int i = 0; i < kGroup; ++i) {
    out[i] = static_cast<float>(std::to_integer<std::int8_t>(block[kHalfBytes + i])) * scale;
  }
}

void dequantize_q4_0(const std::byte* block, float* out) { fill_of_four(block + kHalfBytes, out, about(8, block)); }

void dequantize_q4_1(const std::byte* block, float* out) {
  fill_of_four(block + 2 * kHalfBytes, out, from_least(block));
}

void dequantize_q5_0(const std::byte* block, float* out) { fill_of_five(block + kHalfBytes, out, about(16, block)); }

void dequantize_q5_1(const std::byte* block, float* out) {
  fill_of_five(block + 2 * kHalfBytes, out, from_least(block));
}

void dequantize_q4_k(const std::byte* block, float* out) {
  constexpr int kQuants = 16;  // Where the codes begin.
  fill_groups(block, out, [&](int group, int i) { return shared_code(block + kQuants, group, i); });
}

void dequantize_q5_k(const std::byte* block, float* out) {
  constexpr int kFifthBits = 16;
  constexpr int kQuants = 48;
  fill_groups(block, out, [&](int group, int i) {
    const int fifth = number(block[kFifthBits + i]) >> group & 1;
    return shared_code(block + kQuants, group, i) | fifth << 4;
  });
}

void dequantize_q6_k(const std::byte* block, float* out) {
  constexpr int kUpperBits = 128;
  constexpr int kScales = 192;
  constexpr int kScale = 208;
  constexpr int kOfAScale = 16;
  const float scale = gguf_half_at(block + kScale);
  for (int index = 0; index < kGroupsOf256 * kGroup; ++index) {
    // Halves of 128 weights each: four quarters of 32 share the bytes of their upper bits, two those of their lower.
    const int half = index / 128;
    const int quarter = index % 128 / kGroup;
    const int within = index % kGroup;
    const std::byte lower = block[half * 64 + quarter % 2 * kGroup + within];
    const int upper = number(block[kUpperBits + half * kGroup + within]) >> (2 * quarter) & 3;
    const int code = (quarter < 2 ? low_code(lower) : high_code(lower)) | upper << 4;
    const auto of_group = std::to_integer<std::int8_t>(block[kScales + index / kOfAScale]);
    out[index] = scale * static_cast<float>(of_group) * static_cast<float>(code - 32);
  }
}

}  // namespace decodelab
