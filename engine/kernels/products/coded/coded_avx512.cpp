// Products by coded weights with registers of 64 bytes: four inputs of 16 outputs in each.
#include "engine/kernels/products/coded/coded_kernels.h"

#if defined(__x86_64__)
#include <array>
#include <cstring>

#include <immintrin.h>

#define DECODELAB_VNNI "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma"

namespace decodelab::codes {
namespace {

constexpr int kLine = 64;
/// How far ahead weights are prefetched: the processor's own prefetchers stop at each page of 4 kB.
constexpr int kCodesAhead = 4096;

[[gnu::target(DECODELAB_VNNI), gnu::always_inline]] inline __m512 sixteen_halves(const std::byte* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

/// Returns four codes of one row in all lanes.
[[gnu::target(DECODELAB_VNNI), gnu::always_inline]] inline __m512i four_codes(const std::int8_t* codes) {
  std::int32_t bytes;
  std::memcpy(&bytes, codes, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

#define DECODELAB_INLINE_VNNI [[gnu::target(DECODELAB_VNNI), gnu::always_inline]] inline

DECODELAB_INLINE_VNNI __m128i sixteen_bytes(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
DECODELAB_INLINE_VNNI __m512i line_at(const std::byte* from) { return _mm512_loadu_si512(from); }

/// Eight registers of codes without a sign, of four inputs of 16 outputs each, in the order of the inputs.
template <WeightCode code>
DECODELAB_INLINE_VNNI void load_codes(const std::byte* from, __m512i (&codes)[8]) {
  if constexpr (code == WeightCode::q8) {
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

/// The scales of both halves of a group, and its least weights.
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
    scales.of_half[0] = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(steps.of_scale)));
    scales.least = _mm512_mul_ps(_mm512_sub_ps(_mm512_setzero_ps(), scales.least),
                                 _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(steps.of_least)));
  }
  if constexpr (code == WeightCode::q6_k) {
    for (int half = 0; half < 2; ++half) {
      const __m128i steps = sixteen_bytes(at.codes - kStepsOfQ6K + half * kOutputs);
      scales.of_half[half] = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(steps)));
    }
  }
  return scales;
}

template <WeightCode code, int Rows>
[[gnu::target(DECODELAB_VNNI)]] void multiply_rows_vnni(const std::byte* panel, const CodedRows& x, std::int64_t first,
                                                        float* sums, std::int64_t stride) {
  constexpr std::int64_t kGroupBytes = span_bytes(code) / groups_of_span(code);
  const std::int8_t* codes_of[Rows];
  const float* scales_of_row[Rows];
  const std::int32_t* sums_of[Rows];
  const std::int32_t* first_sums_of[Rows];
  __m512 total[Rows];
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) {
    codes_of[row] = x.codes(first + row);
    scales_of_row[row] = x.scales(first + row);
    sums_of[row] = x.sums(first + row);
    first_sums_of[row] = x.first_sums(first + row);
    total[row] = _mm512_setzero_ps();
  }
  for (std::int64_t group = 0; group < x.groups(); ++group) {
    const GroupAt at = group_at<code>(panel, group);
#pragma GCC unroll 9
    for (std::int64_t line = 0; line < kGroupBytes; line += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(at.codes + kCodesAhead + line), _MM_HINT_T0);
    }
    const Scales512 scales = scales_of<code>(at);
    __m512i codes[8];
    load_codes<code>(at.codes, codes);
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row) {
      const std::int8_t* const inputs = codes_of[row] + group * kCodedGroup;
      const std::int32_t sum = sums_of[row][group];
      const __m512 row_scale = _mm512_set1_ps(scales_of_row[row][group]);
      __m512i even;  // Of one scale, the two are sums of every other four inputs; else each is that of a half.
      __m512i odd;
      if constexpr (has_halves(code)) {
        const std::int32_t first_sum = first_sums_of[row][group];
        even = _mm512_set1_epi32(-zero_of(code) * first_sum);
        odd = _mm512_set1_epi32(-zero_of(code) * (sum - first_sum));
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part) {
          even = _mm512_dpbusd_epi32(even, codes[part], four_codes(inputs + 4 * part));
          odd = _mm512_dpbusd_epi32(odd, codes[4 + part], four_codes(inputs + 16 + 4 * part));
        }
        total[row] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(even), _mm512_mul_ps(scales.of_half[0], row_scale), total[row]);
        total[row] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(odd), _mm512_mul_ps(scales.of_half[1], row_scale), total[row]);
      } else {
        even = _mm512_set1_epi32(-zero_of(code) * sum);
        odd = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part) {
          even = _mm512_dpbusd_epi32(even, codes[2 * part], four_codes(inputs + 8 * part));
          odd = _mm512_dpbusd_epi32(odd, codes[2 * part + 1], four_codes(inputs + 8 * part + 4));
        }
        const __m512 product = _mm512_cvtepi32_ps(_mm512_add_epi32(even, odd));
        total[row] = _mm512_fmadd_ps(product, _mm512_mul_ps(scales.of_half[0], row_scale), total[row]);
      }
      if constexpr (has_least(code)) {
        total[row] = _mm512_fmadd_ps(scales.least, _mm512_set1_ps(scales_of_row[row][group] * static_cast<float>(sum)),
                                     total[row]);
      }
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) {
    _mm512_storeu_ps(sums + row * stride, total[row]);
  }
}

using Multiply = void (*)(const std::byte*, const CodedRows&, std::int64_t, float*, std::int64_t);

template <WeightCode code>
struct Vnni {
  static void multiply(const std::byte* panel, const CodedRows& x, std::int64_t first, std::int64_t count, float* sums,
                       std::int64_t stride) {
    constexpr std::array<Multiply, kMostRows> kTable{multiply_rows_vnni<code, 1>, multiply_rows_vnni<code, 2>,
                                                     multiply_rows_vnni<code, 3>, multiply_rows_vnni<code, 4>,
                                                     multiply_rows_vnni<code, 5>, multiply_rows_vnni<code, 6>,
                                                     multiply_rows_vnni<code, 7>, multiply_rows_vnni<code, 8>};
    kTable[static_cast<std::size_t>(count - 1)](panel, x, first, sums, stride);
  }
};

}  // namespace

MultiplyPanel avx512_vnni_kernel(WeightCode code) { return for_code<Vnni>(code); }

}  // namespace decodelab::codes

#else

namespace decodelab::codes {
MultiplyPanel avx512_vnni_kernel(WeightCode code) { return portable_kernel(code); }
}  // namespace decodelab::codes

#endif
