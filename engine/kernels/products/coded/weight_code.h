// Weights of 8 or 4 bits with a scale for every 32 of them: what a code stands for, and which code is nearest.
#pragma once

#include <array>
#include <cstdint>

namespace decodelab {

/// Neighbouring inputs of an output that share a scale.
inline constexpr std::int64_t kCodedGroup = 32;

/// What the code c of a weight stands for; d is the scale of its group.
enum class WeightCode : std::uint8_t {
  q8,        ///< d * (c - 128), 8 bits
  q4,        ///< d * (c - 8), 4 bits
  q4_least,  ///< d * c + m, 4 bits; m is the least weight of the group.
};
const char* to_string(WeightCode code);

/// Returns what is taken from c before it is multiplied by d.
constexpr std::int32_t zero_of(WeightCode code) {
  return code == WeightCode::q8 ? 128 : code == WeightCode::q4 ? 8 : 0;
}

/// Holds the codes of the 32 weights of a group.
struct CodedGroup {
  std::uint16_t scale = 0;  ///< d, in fp16
  std::uint16_t least = 0;  ///< m, in fp16; 0 but for q4_least
  std::array<std::uint8_t, kCodedGroup> codes{};
};

/// Returns codes of `count` weights, up to 32; the rest of the group stands for zeros as nearly as it can.
///
/// Of several scales it takes the one whose squared error is least: a few weights that are cut off cost less than a
/// coarser scale for all. Each is fitted to the codes that it gave, by least squares.
CodedGroup coded(const float* weights, std::int64_t count, WeightCode code);

/// Returns the weight that a code of the group stands for.
float decoded(const CodedGroup& group, WeightCode code, std::int64_t index);

}  // namespace decodelab
