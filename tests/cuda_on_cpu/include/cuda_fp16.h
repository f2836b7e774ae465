// Stands in for the CUDA header of this name: the half-precision type and its conversions. Arithmetic is added when a
// kernel needs it.
#pragma once

#include <cstdint>
#include <cstring>

struct alignas(2) __half {
  std::uint16_t bits;
};

inline float __half2float(__half value) {
  _Float16 number;
  std::memcpy(&number, &value, sizeof number);
  return static_cast<float>(number);
}

/// Rounds to the nearest value, and to the even one of two.
inline __half __float2half_rn(float value) {
  const auto number = static_cast<_Float16>(value);
  __half half;
  std::memcpy(&half, &number, sizeof half);
  return half;
}
