// Where the scales and codes of 16 outputs stand in a panel of coded weights.
#pragma once

#include <cstdint>

#include "engine/kernels/products/coded/weight_code.h"

namespace decodelab::codes {

/// Outputs of a panel, whose codes alternate: a register of 64 bytes holds four inputs of each of them.
inline constexpr std::int64_t kOutputs = 16;
/// Bytes of codes of 4 bits of a group, and of the upper 2 of 6.
inline constexpr std::int64_t kFourBits = kOutputs * kCodedGroup / 2;
inline constexpr std::int64_t kUpperBits = kOutputs * kCodedGroup / 4;

/// Groups that share what stands at the beginning of their span.
constexpr std::int64_t groups_of_span(WeightCode code) {
  return code == WeightCode::q4_k || code == WeightCode::q6_k ? kGroupsOfK : 1;
}

/// A span is 16 scales of fp16, with q4_least and q4_k 16 least weights, and then the codes, group by group.
///
/// Of q4_k, what scales and least weights of groups are multiplied by, 6 bits each, stands before the codes: for each
/// group 16 bytes with the lower 4 bits of both, the scale's in the lower half, and for two groups together 16 bytes
/// with the upper 2 bits, from the lowest on: scale and least of the first group, scale and least of the second.
///
/// Of q8_row the scales stand once, before all spans, with 32 bytes of zeros behind them, and a span has codes alone.
///
/// Of q6_k, 16 bytes for the first half of a group's inputs and 16 for the second stand before its codes.
constexpr std::int64_t kStepsOfQ4K = 64;
constexpr std::int64_t kUpperStepsOfQ4K = kStepsOfQ4K + kGroupsOfK * kOutputs;
constexpr std::int64_t kCodesOfQ4K = kUpperStepsOfQ4K + kGroupsOfK / 2 * kOutputs;
constexpr std::int64_t kScalesOfQ6K = 32;
constexpr std::int64_t kStepsOfQ6K = 2 * kOutputs;
constexpr std::int64_t kGroupOfQ6K = kStepsOfQ6K + kFourBits + kUpperBits;

/// Returns what stands before the spans of a panel.
constexpr std::int64_t header_bytes(WeightCode code) { return scales_rows(code) ? 64 : 0; }

/// Returns where the codes of a group of a span begin.
constexpr std::int64_t codes_begin(WeightCode code, std::int64_t group) {
  switch (code) {
    case WeightCode::q8_row: return 0;
    case WeightCode::q8:
    case WeightCode::q4: return 32;
    case WeightCode::q4_least: return 64;
    case WeightCode::q4_k: return kCodesOfQ4K + group * kFourBits;
    case WeightCode::q6_k: return kScalesOfQ6K + group * kGroupOfQ6K + kStepsOfQ6K;
  }
  return 0;
}

constexpr std::int64_t span_bytes(WeightCode code) {
  switch (code) {
    case WeightCode::q8:
    case WeightCode::q8_row: return codes_begin(code, 0) + 2 * kFourBits;
    case WeightCode::q4:
    case WeightCode::q4_least: return codes_begin(code, 0) + kFourBits;
    case WeightCode::q4_k: return codes_begin(code, kGroupsOfK);
    case WeightCode::q6_k: return kScalesOfQ6K + kGroupsOfK * kGroupOfQ6K;
  }
  return 0;
}

}  // namespace decodelab::codes
