// The exponential race of Philox: the same numbers for the same (seed, step, token) on CPU and GPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/kernels/philox.h"

namespace decodelab {

// One counter yields the numbers of four tokens that are kRaceLanes apart, so that neighbouring tokens use neighbouring
// counters.
constexpr std::int64_t kRaceLanes = 64;
constexpr std::int64_t kRaceChunk = 4 * kRaceLanes;  ///< Tokens that kRaceLanes counters serve.

// Each operation rounds once, on every machine: nvcc would contract a product and a sum, and so would g++ where FMA is
// allowed.
DECODELAB_HOST_DEVICE inline float rounded_product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
DECODELAB_HOST_DEVICE inline float rounded_sum(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

DECODELAB_HOST_DEVICE inline std::int32_t bits_of(float value) {
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
DECODELAB_HOST_DEVICE inline float float_of(std::int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Returns a number of Exp(1) from 32 random bits: -log(1 - u) with u = (k + 1/2) / 2^31, k the top 31 bits.
///
/// The result lies between 2^-32 and 22.2 and is never 0; the smallest numbers, which win races, keep a float's
/// relative precision. The logarithm is the series 2 atanh(f / (2 + f)) after the exponent has been split off; the
/// truncated terms are below 3e-9 of the whole.
DECODELAB_HOST_DEVICE inline float exponential_float(std::uint32_t bits) {
  constexpr float kUnit = 1.0f / 2147483648.0f;
  constexpr float kLn2 = 0.693147181f;
  constexpr std::int32_t kSqrtHalf = 0x3f3504f3;  // The bits of the float sqrt(1/2).
  constexpr std::int32_t kExponentStep = 1 << 23;
  const auto k = static_cast<std::int32_t>(bits >> 1);
  const float u = rounded_product(rounded_sum(static_cast<float>(k), 0.5f), kUnit);
  const float rest = rounded_product(rounded_sum(static_cast<float>(0x7fffffff - k), 0.5f), kUnit);  // 1 - u
  // rest = 2^exponent (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
  const std::int32_t exponent = (bits_of(rest) - kSqrtHalf) >> 23;
  const float reduced = float_of(bits_of(rest) - exponent * kExponentStep) - 1.0f;
  // For a small u, 1 - u has lost the digits that matter. The choice is made by bits, since g++ would not vectorize a
  // branch.
  const std::int32_t small = -static_cast<std::int32_t>(exponent == 0);
  const float f = float_of((bits_of(-u) & small) | (bits_of(reduced) & ~small));
  const float s = f / (2.0f + f);
  const float z = rounded_product(s, s);
  float series = 1.0f / 9.0f;
  series = rounded_sum(rounded_product(series, z), 1.0f / 7.0f);
  series = rounded_sum(rounded_product(series, z), 1.0f / 5.0f);
  series = rounded_sum(rounded_product(series, z), 1.0f / 3.0f);
  series = rounded_sum(rounded_product(series, z), 1.0f);
  return rounded_sum(rounded_product(static_cast<float>(-exponent), kLn2), rounded_product(-2.0f * s, series));
}

/// Returns the random words of the tokens chunk * kRaceChunk + lane + {0, 1, 2, 3} * kRaceLanes.
DECODELAB_HOST_DEVICE inline PhiloxWords race_words(std::int64_t chunk, std::int64_t lane, std::int64_t seed,
                                                    std::int64_t step) {
  return philox4x32(
      philox_counter(static_cast<std::uint64_t>(chunk * kRaceLanes + lane), static_cast<std::uint64_t>(step)),
      static_cast<std::uint64_t>(seed));
}

/// Returns the key with which a token takes part in the race; the largest key wins. A higher score gives a larger key,
/// and among equal scores a lower token does. Scores are not negative, so their bits are in the order of their values.
DECODELAB_HOST_DEVICE inline std::uint64_t race_key(std::int32_t score_bits, std::int64_t token) {
  return static_cast<std::uint64_t>(score_bits) << 32 | (0xffffffffu - static_cast<std::uint32_t>(token));
}
DECODELAB_HOST_DEVICE inline std::int64_t race_winner(std::uint64_t key) {
  return 0xffffffffu - static_cast<std::uint32_t>(key);
}

/// Returns the largest key of the tokens [first, last) of one row of `probabilities`; `first` is a multiple of
/// kRaceChunk.
std::uint64_t race_on_cpu(const float* probabilities, std::int64_t first, std::int64_t last, std::int64_t seed,
                          std::int64_t step);

}  // namespace decodelab
