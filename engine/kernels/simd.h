// Sixteen floats as one value, in the compiler's own vector types: kernels written with it are compiled once for each
// set of instructions, from one source.
#pragma once

#include <cstdint>
#include <cstring>

// A value of these types never crosses a call that is not inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace decodelab::simd {

inline constexpr std::int64_t kLanes = 16;
using Floats = float __attribute__((vector_size(64)));
using Ints = std::int32_t __attribute__((vector_size(64)));
using Words = std::uint32_t __attribute__((vector_size(64)));
using Halves = std::uint16_t __attribute__((vector_size(32)));

/// The storage type of a bf16 number: the upper half of an fp32 number.
using Bfloat16 = std::uint16_t;
/// The storage type of an fp16 number.
enum class Half : std::uint16_t {};

[[gnu::always_inline]] inline Floats broadcast(float value) { return Floats{} + value; }

[[gnu::always_inline]] inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
[[gnu::always_inline]] inline Floats load(const Bfloat16* from) {
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return reinterpret_cast<Floats>(__builtin_convertvector(halves, Words) << 16);
}
/// Loads fp16. Its exponent and digits, moved to where fp32 has them, are the number times 2^-112; only infinity and
/// NaN need their exponent filled.
[[gnu::always_inline]] inline Floats load(const Half* from) {
  constexpr float kTwoTo112 = 5192296858534827628530496329220096.0f;
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  const Words bits = __builtin_convertvector(halves, Words);
  const Words shifted = (bits & 0x7fffU) << 13;
  const Words finite = reinterpret_cast<Words>(reinterpret_cast<Floats>(shifted) * kTwoTo112);
  const Words endless = shifted | 0x7f800000U;
  const Words size = (bits & 0x7c00U) == 0x7c00U ? endless : finite;
  return reinterpret_cast<Floats>(size | ((bits & 0x8000U) << 16));
}
[[gnu::always_inline]] inline void store(float* to, const Floats& value) { std::memcpy(to, &value, sizeof value); }
/// Returns the numbers as bf16, each in the lower half of a word. Rounds to nearest, ties to even. Not for NaN, which
/// it may turn into infinity.
[[gnu::always_inline]] inline Words bfloat16_words(const Floats& value) {
  const Words bits = reinterpret_cast<Words>(value);
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
}
[[gnu::always_inline]] inline void store(Bfloat16* to, const Floats& value) {
  const Halves halves = __builtin_convertvector(bfloat16_words(value), Halves);
  std::memcpy(to, &halves, sizeof halves);
}

/// Rounds to nearest, ties to even, and beyond the largest number to infinity; a NaN stays a NaN.
[[gnu::always_inline]] inline void store(Half* to, const Floats& value) {
  constexpr float kTwoToMinus112 = 1.925929944387235853055977942584927e-34f;
  const Words bits = reinterpret_cast<Words>(value);
  const Words size = bits & 0x7fffffffU;
  const Words scaled = reinterpret_cast<Words>(reinterpret_cast<Floats>(size) * kTwoToMinus112);
  const Words rounded = (scaled + 0xfffU + ((scaled >> 13) & 1U)) >> 13;
  const Words bounded = rounded > 0x7c00U ? Words{} + 0x7c00U : rounded;
  const Words whole = (size > 0x7f800000U ? Words{} + 0x7e00U : bounded) | ((bits >> 16) & 0x8000U);
  const Halves halves = __builtin_convertvector(whole, Halves);
  std::memcpy(to, &halves, sizeof halves);
}

/// Load and store the first `count` < 16 elements; the others load as 0.
template <typename Element>
[[gnu::always_inline]] inline Floats load_some(const Element* from, std::int64_t count) {
  Element elements[kLanes] = {};
  std::memcpy(elements, from, static_cast<std::size_t>(count) * sizeof(Element));
  return load(elements);
}
template <typename Element>
[[gnu::always_inline]] inline void store_some(Element* to, const Floats& value, std::int64_t count) {
  Element elements[kLanes];
  store(elements, value);
  std::memcpy(to, elements, static_cast<std::size_t>(count) * sizeof(Element));
}

/// Load and store the first `count` >= 1 elements, at most sixteen.
template <typename Element>
[[gnu::always_inline]] inline Floats load_up_to(const Element* from, std::int64_t count) {
  return count >= kLanes ? load(from) : load_some(from, count);
}
template <typename Element>
[[gnu::always_inline]] inline void store_up_to(Element* to, const Floats& value, std::int64_t count) {
  if (count >= kLanes) {
    store(to, value);
  } else {
    store_some(to, value, count);
  }
}

template <typename Vector>
[[gnu::always_inline]] inline Vector max(const Vector& a, const Vector& b) {
  return a > b ? a : b;
}
template <typename Vector>
[[gnu::always_inline]] inline Vector min(const Vector& a, const Vector& b) {
  return a < b ? a : b;
}

/// Reduces sixteen numbers to one: `combined` is applied to the two halves of the vector, to the halves of the result,
/// and so on. The halves are vectors of their own, since compilers shuffle no vector that is wider than a register.
template <typename Combine>
[[gnu::always_inline]] inline float reduced(const Floats& of, Combine&& combined) {
  using Eight = float __attribute__((vector_size(32)));
  using Four = float __attribute__((vector_size(16)));
  Eight eights[2];
  std::memcpy(eights, &of, sizeof of);
  const Eight eight = combined(eights[0], eights[1]);
  Four fours[2];
  std::memcpy(fours, &eight, sizeof eight);
  Four value = combined(fours[0], fours[1]);
  value = combined(value, __builtin_shufflevector(value, value, 2, 3, 0, 1));
  value = combined(value, __builtin_shufflevector(value, value, 1, 0, 3, 2));
  return value[0];
}
[[gnu::always_inline]] inline float sum(const Floats& value) {
  return reduced(value, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}
[[gnu::always_inline]] inline float largest(const Floats& value) {
  return reduced(value, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a > b ? a : b; });
}

/// Returns p(r) * 2^n. The integer n is in the lowest bits of `shifted`, a number to which kRounder was added.
inline constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
template <typename Vector>
[[gnu::always_inline]] inline Vector scaled(const Vector& p, const Vector& shifted) {
  using Whole = decltype(p < shifted);  // Integers of the same width.
  return reinterpret_cast<Vector>(reinterpret_cast<Whole>(p) + (reinterpret_cast<Whole>(shifted) << 23));
}

/// Returns 2^x within 3 units in the last place, for x clamped to [-126, 127]: Taylor's polynomial of degree 6 on |r|
/// <= 1 / 2.
[[gnu::always_inline]] inline Floats exp2(const Floats& x) {
  const Floats clamped = max(broadcast(-126.0f), min(broadcast(127.0f), x));
  const Floats shifted = clamped + kRounder;
  const Floats r = clamped - (shifted - kRounder);
  Floats p = broadcast(1.54035304e-4f);
  p = p * r + 1.33335581e-3f;
  p = p * r + 9.61812911e-3f;
  p = p * r + 5.55041087e-2f;
  p = p * r + 0.240226507f;
  p = p * r + 0.693147181f;
  p = p * r + 1.0f;
  return scaled(p, shifted);
}

/// Returns e^x within 2 units in the last place, for x clamped to [-87, 88]: 2^n * p(r) with n = round(x / ln 2), the
/// classic reduction (Cody and Waite 1980), and Taylor's polynomial of degree 7, whose error on |r| <= ln 2 / 2 lies
/// below that of fp32.
template <typename Vector>
[[gnu::always_inline]] inline Vector exp(const Vector& x) {
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  const Vector zero{};
  const Vector clamped = max(zero - 87.0f, min(zero + 88.0f, x));
  const Vector shifted = clamped * kLog2E + kRounder;
  const Vector n = shifted - kRounder;
  const Vector r = (clamped - n * kLn2High) - n * kLn2Low;
  Vector p = zero + 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return scaled(p, shifted);
}

}  // namespace decodelab::simd
