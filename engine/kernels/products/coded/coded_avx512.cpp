// Products by coded weights with registers of 64 bytes: four inputs of 16 outputs in each.
#include "engine/kernels/products/coded/coded_avx512.h"

#include "engine/kernels/products/coded/coded_kernels.h"

#if defined(__x86_64__)
#include <array>
#include <cstring>

namespace decodelab::codes {
namespace {

/// How far ahead weights are prefetched: the processor's own prefetchers stop at each page of 4 kB.
constexpr int kCodesAhead = 4096;

/// Returns four codes of one row in all lanes.
DECODELAB_INLINE_VNNI __m512i four_codes(const std::int8_t* codes) {
  std::int32_t bytes;
  std::memcpy(&bytes, codes, sizeof bytes);
  return _mm512_set1_epi32(bytes);
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
  __m512i of_row[Rows][2];  // Of rows with one scale: sums of every other four inputs.
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) {
    codes_of[row] = x.codes(first + row);
    scales_of_row[row] = x.scales(first + row);
    sums_of[row] = x.sums(first + row);
    first_sums_of[row] = x.first_sums(first + row);
    total[row] = _mm512_setzero_ps();
    of_row[row][0] = of_row[row][1] = _mm512_setzero_si512();
  }
  for (std::int64_t group = 0; group < x.groups(); ++group) {
    const GroupAt at = group_at<code>(panel, group);
#pragma GCC unroll 9
    for (std::int64_t line = 0; line < kGroupBytes; line += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(at.codes + kCodesAhead + line), _MM_HINT_T0);
    }
    __m512i codes[8];
    load_codes<code>(at.codes, codes);
    if constexpr (scales_rows(code)) {
#pragma GCC unroll 8
      for (int row = 0; row < Rows; ++row) {
        const std::int8_t* const inputs = codes_of[row] + group * kCodedGroup;
#pragma GCC unroll 8
        for (int part = 0; part < 8; ++part) {
          of_row[row][part % 2] =
              _mm512_dpbusd_epi32(of_row[row][part % 2], codes[part], four_codes(inputs + 4 * part));
        }
      }
      continue;
    }
    const Scales512 scales = scales_of<code>(at);
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
        total[row] = _mm512_fmadd_ps(as_floats(even), _mm512_mul_ps(scales.of_half[0], row_scale), total[row]);
        total[row] = _mm512_fmadd_ps(as_floats(odd), _mm512_mul_ps(scales.of_half[1], row_scale), total[row]);
      } else {
        even = _mm512_set1_epi32(-zero_of(code) * sum);
        odd = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part) {
          even = _mm512_dpbusd_epi32(even, codes[2 * part], four_codes(inputs + 8 * part));
          odd = _mm512_dpbusd_epi32(odd, codes[2 * part + 1], four_codes(inputs + 8 * part + 4));
        }
        const __m512 product = as_floats(_mm512_add_epi32(even, odd));
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
    if constexpr (scales_rows(code)) {
      const __m512i product = _mm512_sub_epi32(_mm512_add_epi32(of_row[row][0], of_row[row][1]),
                                               _mm512_set1_epi32(zero_of(code) * sums_of[row][0]));
      total[row] = _mm512_mul_ps(as_floats(product),
                                 _mm512_mul_ps(sixteen_halves(panel), _mm512_set1_ps(scales_of_row[row][0])));
    }
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
