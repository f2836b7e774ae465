// Numbers of 16 bits with 8 bits of exponent (bf16), by integer arithmetic: the same on every processor.
#pragma once

#include <bit>
#include <cstdint>

namespace decodelab {

/// Returns the nearest one, of two alike the even one; a NaN becomes a quiet one.
[[gnu::always_inline]] inline std::uint16_t to_bfloat16(float value) {
  constexpr std::uint32_t kMagnitude = 0x7fffffffu;
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & kMagnitude) > kInfinity ? quiet_nan : rounded);
}

}  // namespace decodelab
