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
  q8_row,    ///< The same, but all groups of an output share d.
  q4,        ///< d * (c - 8), 4 bits
  q4_least,  ///< d * c + m, 4 bits; m is the least weight of the group.
  q4_k,      ///< d * s * c - m * t, 4 bits; 8 groups share d and m, and s and t of each have 6 bits.
  q6_k,      ///< d * s * (c - 32), 6 bits; 8 groups share d, and s of each 16 weights has 8 bits and a sign.
};
/// Groups that share scales in q4_k and q6_k.
inline constexpr std::int64_t kGroupsOfK = 8;
const char* to_string(WeightCode code);

/// Returns what is taken from c before it is multiplied by d.
constexpr std::int32_t zero_of(WeightCode code) {
  switch (code) {
    case WeightCode::q8:
    case WeightCode::q8_row: return 128;
    case WeightCode::q4: return 8;
    case WeightCode::q6_k: return 32;
    case WeightCode::q4_least:
    case WeightCode::q4_k: break;
  }
  return 0;
}

/// Holds the codes of the 32 weights of a group.
struct CodedGroup {
  std::uint16_t scale = 0;  ///< d, in fp16
  std::uint16_t least = 0;  ///< m, in fp16; 0 but for q4_least and q4_k
  /// What d is multiplied by for the first and the second half of the group, and m for all of it; 1 but for q4_k, whose
  /// halves have the same, and q6_k.
  std::array<std::int8_t, 2> steps{1, 1};
  std::uint8_t least_step = 1;
  std::array<std::uint8_t, kCodedGroup> codes{};
};

/// Whether all groups of an output share a scale, and all inputs of a row of activations.
constexpr bool scales_rows(WeightCode code) { return code == WeightCode::q8_row; }

/// Returns codes of `count` weights, up to 32; the rest of the group stands for zeros as nearly as it can. Of q8, q4
/// and q4_least alone: the others are read from files, or need more than a group to be known.
///
/// Of several scales it takes the one whose squared error is least: a few weights that are cut off cost less than a
/// coarser scale for all. Each is fitted to the codes that it gave, by least squares.
CodedGroup coded(const float* weights, std::int64_t count, WeightCode code);

/// Returns codes of q8_row: of `count` weights, up to 32, in steps of `scale`.
CodedGroup coded_by(std::uint16_t scale, const float* weights, std::int64_t count);
/// Returns the scale, in fp16, with which a row whose largest magnitude is `largest` has its codes.
std::uint16_t row_scale(float largest);

/// Returns the weight that a code of the group stands for.
float decoded(const CodedGroup& group, WeightCode code, std::int64_t index);

}  // namespace decodelab
