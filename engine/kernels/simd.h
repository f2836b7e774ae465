// Sixteen floats as one value, in the compiler's own vector types: kernels written with it are compiled once for each
// set of instructions, from one source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

// A value of these types never crosses a call that is not inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace decodelab::simd {

inline constexpr std::int64_t kLanes = 16;

/// Names the vectors of N numbers. Each N has its own definition, since compilers ignore a size that depends on a
/// parameter.
template <std::int64_t N>
struct Lanes;
template <>
struct Lanes<4> {
  using Floats = float __attribute__((vector_size(16)));
  using Words = std::uint32_t __attribute__((vector_size(16)));
  using Halves = std::uint16_t __attribute__((vector_size(8)));
};
template <>
struct Lanes<8> {
  using Floats = float __attribute__((vector_size(32)));
  using Words = std::uint32_t __attribute__((vector_size(32)));
  using Halves = std::uint16_t __attribute__((vector_size(16)));
};
template <>
struct Lanes<16> {
  using Floats = float __attribute__((vector_size(64)));
  using Words = std::uint32_t __attribute__((vector_size(64)));
  using Halves = std::uint16_t __attribute__((vector_size(32)));
};
using Floats = Lanes<kLanes>::Floats;
using Words = Lanes<kLanes>::Words;
using Halves = Lanes<kLanes>::Halves;
using Ints = std::int32_t __attribute__((vector_size(64)));
/// The vectors of as many numbers as a vector of floats has.
template <typename Vector>
using LanesLike = Lanes<static_cast<std::int64_t>(sizeof(Vector) / sizeof(float))>;

/// The storage type of a bf16 number: the upper half of an fp32 number.
using Bfloat16 = std::uint16_t;
/// The storage type of an fp16 number.
enum class Half : std::uint16_t {};

[[gnu::always_inline]] inline Floats broadcast(float value) { return Floats{} + value; }

template <std::int64_t N = kLanes>
[[gnu::always_inline]] inline typename Lanes<N>::Floats load(const float* from) {
  typename Lanes<N>::Floats value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <std::int64_t N = kLanes>
[[gnu::always_inline]] inline typename Lanes<N>::Floats load(const Bfloat16* from) {
  typename Lanes<N>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return reinterpret_cast<typename Lanes<N>::Floats>(__builtin_convertvector(halves, typename Lanes<N>::Words) << 16);
}
/// Loads fp16. Its exponent and digits, moved to where fp32 has them, are the number times 2^-112; only infinity and
/// NaN need their exponent filled.
template <std::int64_t N = kLanes>
[[gnu::always_inline]] inline typename Lanes<N>::Floats load(const Half* from) {
  using Floats = typename Lanes<N>::Floats;
  using Words = typename Lanes<N>::Words;
  constexpr float kTwoTo112 = 5192296858534827628530496329220096.0f;
  typename Lanes<N>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  const Words bits = __builtin_convertvector(halves, Words);
  const Words shifted = (bits & 0x7fffU) << 13;
  const Words finite = reinterpret_cast<Words>(reinterpret_cast<Floats>(shifted) * kTwoTo112);
  const Words endless = shifted | 0x7f800000U;
  const Words size = (bits & 0x7c00U) == 0x7c00U ? endless : finite;
  return reinterpret_cast<Floats>(size | ((bits & 0x8000U) << 16));
}
template <typename Vector>
[[gnu::always_inline]] inline void store(float* to, const Vector& value) {
  std::memcpy(to, &value, sizeof value);
}
/// Returns the numbers as bf16, each in the lower half of a word. Rounds to nearest, ties to even. Not for NaN, which
/// it may turn into infinity.
template <typename Vector>
[[gnu::always_inline]] inline typename LanesLike<Vector>::Words bfloat16_words(const Vector& value) {
  using Words = typename LanesLike<Vector>::Words;
  const Words bits = reinterpret_cast<Words>(value);
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
}
template <typename Vector>
[[gnu::always_inline]] inline void store(Bfloat16* to, const Vector& value) {
  using Halves = typename LanesLike<Vector>::Halves;
  const Halves halves = __builtin_convertvector(bfloat16_words(value), Halves);
  std::memcpy(to, &halves, sizeof halves);
}

/// Rounds to nearest, ties to even, and beyond the largest number to infinity; a NaN stays a NaN.
template <typename Vector>
[[gnu::always_inline]] inline void store(Half* to, const Vector& value) {
  using Words = typename LanesLike<Vector>::Words;
  using Halves = typename LanesLike<Vector>::Halves;
  constexpr float kTwoToMinus112 = 1.925929944387235853055977942584927e-34f;
  const Words bits = reinterpret_cast<Words>(value);
  const Words size = bits & 0x7fffffffU;
  const Words scaled = reinterpret_cast<Words>(reinterpret_cast<Vector>(size) * kTwoToMinus112);
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

/// Stores the first `count` >= 1 elements, at most sixteen.
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
template <typename Vector, typename Combine>
[[gnu::always_inline]] inline float reduced(const Vector& of, Combine&& combined) {
  constexpr std::int64_t kOfFour = 16;
  if constexpr (sizeof(Vector) > kOfFour) {
    typename Lanes<static_cast<std::int64_t>(sizeof(Vector) / 2 / sizeof(float))>::Floats halves[2];
    std::memcpy(halves, &of, sizeof of);
    return reduced(combined(halves[0], halves[1]), combined);
  } else {
    const Vector pairs = combined(of, __builtin_shufflevector(of, of, 2, 3, 0, 1));
    return combined(pairs, __builtin_shufflevector(pairs, pairs, 1, 0, 3, 2))[0];
  }
}
template <typename Vector>
[[gnu::always_inline]] inline float sum(const Vector& value) {
  return reduced(value, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}
template <typename Vector>
[[gnu::always_inline]] inline float largest(const Vector& value) {
  return reduced(value, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a > b ? a : b; });
}

/// Returns in lane l the sum of lanes l and l ^ H: those of `a` where bit H of l is 0, those of `b` where it is 1.
template <std::int64_t H, typename Vector, std::size_t... L>
[[gnu::always_inline]] inline Vector folded(const Vector& a, const Vector& b, std::index_sequence<L...>) {
  constexpr std::size_t kOther = sizeof...(L);  // Lanes of `b` are counted on from those of `a`.
  return __builtin_shufflevector(a, b, static_cast<int>((L & H) == 0 ? L : kOther + L)...) +
         __builtin_shufflevector(a, b, static_cast<int>((L & H) == 0 ? L ^ H : kOther + (L ^ H))...);
}

/// Returns the sum of the lanes of each of N registers, that of register i in lane i: as many additions of halves as
/// one register takes by itself, for each of two registers together.
template <std::int64_t N, std::int64_t H = N / 2>
[[gnu::always_inline]] inline typename Lanes<N>::Floats sums_of_lanes(typename Lanes<N>::Floats (&registers)[N]) {
#pragma GCC unroll 8
  for (std::int64_t index = 0; index < H; ++index) {
    registers[index] =
        folded<H>(registers[index], registers[index + H], std::make_index_sequence<static_cast<std::size_t>(N)>());
  }
  if constexpr (H > 1) {
    return sums_of_lanes<N, H / 2>(registers);
  } else {
    return registers[0];
  }
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
template <typename Vector>
[[gnu::always_inline]] inline Vector exp2(const Vector& x) {
  const Vector zero{};
  const Vector clamped = max(zero - 126.0f, min(zero + 127.0f, x));
  const Vector shifted = clamped + kRounder;
  const Vector r = clamped - (shifted - kRounder);
  Vector p = zero + 1.54035304e-4f;
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
