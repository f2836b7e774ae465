// Numbers of 16 bits with 5 bits of exponent (fp16), by integer arithmetic: the same on every processor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace decodelab {

/// Returns the value, exactly, and the same where the processor flushes denormal numbers: none is an operand here.
inline float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  // The biases differ by 112; infinity and NaN keep the largest exponent.
  const std::uint32_t wide_exponent = exponent == 0x1fu ? 0xffu : exponent + 112u;
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

/// Returns the nearest one, of two alike the even one; a number beyond the largest becomes infinity. `value` is no NaN.
inline std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x477ff000u) {  // 65520, half-way between the largest and what would come next
    return sign | 0x7c00u;
  }
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
    const float units = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<std::uint16_t>(std::nearbyint(units));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return sign | static_cast<std::uint16_t>((magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

}  // namespace decodelab
