// Reads panels of coded weights into registers of 64 bytes.
#pragma once

#include "engine/kernels/products/coded/coded_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define DECODELAB_VNNI "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma"
#define DECODELAB_INLINE_VNNI [[gnu::target(DECODELAB_VNNI), gnu::always_inline]] inline

namespace decodelab::codes {

inline constexpr int kLine = 64;
/// g++ 12 warns of what it leaves undefined itself in conversions without a mask.
inline constexpr __mmask16 kAllLanes = 0xffff;

DECODELAB_INLINE_VNNI __m512 sixteen_halves(const std::byte* from) {
  return _mm512_maskz_cvtph_ps(kAllLanes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
DECODELAB_INLINE_VNNI __m512 as_floats(__m512i integers) { return _mm512_maskz_cvtepi32_ps(kAllLanes, integers); }
DECODELAB_INLINE_VNNI __m128i sixteen_bytes(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
DECODELAB_INLINE_VNNI __m512i line_at(const std::byte* from) { return _mm512_loadu_si512(from); }

/// Loads eight registers of codes without a sign, of four inputs of 16 outputs each, in the order of the inputs.
template <WeightCode code>
DECODELAB_INLINE_VNNI void load_codes(const std::byte* from, __m512i (&codes)[8]) {
  if constexpr (has_eight_bits(code)) {
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) {
      codes[part] = line_at(from + part * kLine);
    }
  } else {
    const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const __m512i both = line_at(from + part * kLine);
      codes[2 * part] = _mm512_and_si512(both, low);
      codes[2 * part + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
  }
  if constexpr (code == WeightCode::q6_k) {
    const __m512i two = _mm512_set1_epi8(0x30);
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const __m512i upper = line_at(from + kFourBits + part * kLine);
      codes[4 * part] = _mm512_or_si512(codes[4 * part], _mm512_and_si512(_mm512_slli_epi16(upper, 4), two));
      codes[4 * part + 1] = _mm512_or_si512(codes[4 * part + 1], _mm512_and_si512(_mm512_slli_epi16(upper, 2), two));
      codes[4 * part + 2] = _mm512_or_si512(codes[4 * part + 2], _mm512_and_si512(upper, two));
      codes[4 * part + 3] = _mm512_or_si512(codes[4 * part + 3], _mm512_and_si512(_mm512_srli_epi16(upper, 2), two));
    }
  }
}

/// Holds the scales of both halves of a group, and its least weights.
struct Scales512 {
  __m512 of_half[2];
  __m512 least;
};

template <WeightCode code>
DECODELAB_INLINE_VNNI Scales512 scales_of(const GroupAt& at) {
  const __m512 scale = sixteen_halves(at.span);
  Scales512 scales{.of_half = {scale, scale}, .least = _mm512_setzero_ps()};
  if constexpr (has_least(code)) {
    scales.least = sixteen_halves(at.span + 2 * kOutputs);
  }
  if constexpr (code == WeightCode::q4_k) {
    const StepsOfQ4K steps =
        steps_of_q4_k(sixteen_bytes(at.span + kStepsOfQ4K + at.group * kOutputs),
                      sixteen_bytes(at.span + kUpperStepsOfQ4K + at.group / 2 * kOutputs), at.group);
    scales.of_half[0] = _mm512_mul_ps(scale, as_floats(_mm512_cvtepu8_epi32(steps.of_scale)));
    scales.least = _mm512_mul_ps(_mm512_sub_ps(_mm512_setzero_ps(), scales.least),
                                 as_floats(_mm512_cvtepu8_epi32(steps.of_least)));
  }
  if constexpr (code == WeightCode::q6_k) {
    for (int half = 0; half < 2; ++half) {
      const __m128i steps = sixteen_bytes(at.codes - kStepsOfQ6K + half * kOutputs);
      scales.of_half[half] = _mm512_mul_ps(scale, as_floats(_mm512_cvtepi8_epi32(steps)));
    }
  }
  return scales;
}

}  // namespace decodelab::codes
#endif
