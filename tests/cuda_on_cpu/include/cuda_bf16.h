// Stands in for the CUDA header of this name: bfloat16 and its conversions. Arithmetic is added when a kernel needs it.
#pragma once

#include <cstdint>
#include <cstring>

struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

/// Rounds to the nearest value, and to the even one of two. Every NaN becomes 0x7fff, as on a GPU.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  if (value != value) {
    return {0x7fff};
  }
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fff + (bits >> 16 & 1);
  return {static_cast<std::uint16_t>(bits >> 16)};
}
