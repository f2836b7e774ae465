// Reads scales and codes out of blocks.
#include "engine/layers/stored_codes.h"

#include <cstring>
#include <stdexcept>

#include "engine/checkpoint/gguf_decoders.h"

namespace decodelab {
namespace {

constexpr std::size_t kHalfBytes = 2;

std::uint16_t half_bits_at(std::span<const std::byte> block, std::size_t place) {
  std::uint16_t bits;
  std::memcpy(&bits, block.data() + place * kHalfBytes, sizeof bits);
  return bits;
}

/// Reads 16 bytes of which the low halves are the first codes.
void read_halves(std::span<const std::byte> bytes, CodedGroup& group) {
  for (std::size_t index = 0; index < kCodedGroup / 2; ++index) {
    const auto both = std::to_integer<std::uint8_t>(bytes[index]);
    group.codes[index] = both & 15;
    group.codes[index + kCodedGroup / 2] = both >> 4;
  }
}

/// Reads one of the eight groups of a block.
void read_q4_k(std::span<const std::byte> block, std::size_t index, CodedGroup& group) {
  const SixBits steps = six_bits(block.data() + 2 * kHalfBytes, static_cast<int>(index));
  group.steps.fill(static_cast<std::int8_t>(steps.scale));
  group.least_step = static_cast<std::uint8_t>(steps.least);
  group.least = half_bits_at(block, 1);
  constexpr std::size_t kQuants = 16;
  for (std::size_t input = 0; input < kCodedGroup; ++input) {
    const auto both = std::to_integer<std::uint8_t>(block[kQuants + index / 2 * kCodedGroup + input]);
    group.codes[input] = index % 2 == 0 ? both & 15 : both >> 4;
  }
}

void read_q6_k(std::span<const std::byte> block, std::size_t index, CodedGroup& group) {
  constexpr std::size_t kUpperBits = 128;
  constexpr std::size_t kSteps = 192;
  constexpr std::size_t kScale = 208;
  std::memcpy(&group.scale, block.data() + kScale, sizeof group.scale);
  for (std::size_t half = 0; half < group.steps.size(); ++half) {
    group.steps[half] = std::to_integer<std::int8_t>(block[kSteps + 2 * index + half]);
  }
  const std::size_t half = index / 4;
  const std::size_t quarter = index % 4;
  for (std::size_t input = 0; input < kCodedGroup; ++input) {
    const auto both = std::to_integer<std::uint8_t>(block[half * 64 + quarter % 2 * kCodedGroup + input]);
    const auto upper = std::to_integer<std::uint8_t>(block[kUpperBits + half * kCodedGroup + input]);
    group.codes[input] =
        static_cast<std::uint8_t>((quarter < 2 ? both & 15 : both >> 4) | (upper >> (2 * quarter) & 3) << 4);
  }
}

}  // namespace

std::optional<WeightCode> code_of(GgufType type) {
  switch (type) {
    case GgufType::q8_0:
    case GgufType::q5_0: return WeightCode::q8;  // Five bits are held in eight.
    case GgufType::q4_0: return WeightCode::q4;
    case GgufType::q4_1: return WeightCode::q4_least;
    case GgufType::q4_k: return WeightCode::q4_k;
    case GgufType::q6_k: return WeightCode::q6_k;
    default: return std::nullopt;
  }
}

CodedGroup coded_block(GgufType type, std::span<const std::byte> row, std::int64_t index) {
  const GgufEncoding& encoding = *find_gguf_encoding(type);
  const auto bytes = static_cast<std::size_t>(encoding.block_bytes);
  const std::int64_t groups = encoding.block_elements / kCodedGroup;
  const auto block = row.subspan(static_cast<std::size_t>(index / groups) * bytes, bytes);
  CodedGroup group{.scale = half_bits_at(block, 0)};
  switch (type) {
    case GgufType::q8_0:
      for (std::size_t input = 0; input < kCodedGroup; ++input) {
        group.codes[input] = std::to_integer<std::uint8_t>(block[kHalfBytes + input]) ^ 0x80;  // q + 128
      }
      return group;
    case GgufType::q4_0: read_halves(block.subspan(kHalfBytes), group); return group;
    case GgufType::q5_0: {
      std::uint32_t fifth;
      std::memcpy(&fifth, block.data() + kHalfBytes, sizeof fifth);
      read_halves(block.subspan(kHalfBytes + sizeof fifth), group);
      for (std::size_t input = 0; input < kCodedGroup; ++input) {
        const auto code = static_cast<std::uint8_t>(group.codes[input] | (fifth >> input & 1) << 4);
        group.codes[input] = static_cast<std::uint8_t>(code + 128 - 16);
      }
      return group;
    }
    case GgufType::q4_1:
      group.least = half_bits_at(block, 1);
      read_halves(block.subspan(2 * kHalfBytes), group);
      return group;
    case GgufType::q4_k: read_q4_k(block, static_cast<std::size_t>(index % groups), group); return group;
    case GgufType::q6_k: read_q6_k(block, static_cast<std::size_t>(index % groups), group); return group;
    default: throw std::logic_error("blocks of type " + gguf_type_name(type) + " have no code");
  }
}

}  // namespace decodelab
