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

/// Eight registers of codes without a sign, of four inputs of 16 outputs each, in the order of the inputs.
template <WeightCode code>
[[gnu::target(DECODELAB_VNNI), gnu::always_inline]] inline void load_codes(const std::byte* from, __m512i (&codes)[8]) {
  if constexpr (code == WeightCode::q8) {
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) {
      codes[part] = _mm512_loadu_si512(from + part * kLine);
    }
  } else {
    const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const __m512i both = _mm512_loadu_si512(from + part * kLine);
      codes[2 * part] = _mm512_and_si512(both, low);
      codes[2 * part + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
  }
}

template <WeightCode code, int Rows>
[[gnu::target(DECODELAB_VNNI)]] void multiply_rows_vnni(const std::byte* panel, const CodedRows& x, std::int64_t first,
                                                        float* sums, std::int64_t stride) {
  constexpr std::int64_t kHeader = CodedMatrix::header_bytes(code);
  constexpr std::int64_t kTile = CodedMatrix::tile_bytes(code);
  const std::int8_t* codes_of[Rows];
  const float* scales_of[Rows];
  const std::int32_t* sums_of[Rows];
  __m512 total[Rows];
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) {
    codes_of[row] = x.codes(first + row);
    scales_of[row] = x.scales(first + row);
    sums_of[row] = x.sums(first + row);
    total[row] = _mm512_setzero_ps();
  }
  for (std::int64_t group = 0; group < x.groups(); ++group, panel += kTile) {
#pragma GCC unroll 9
    for (std::int64_t line = 0; line < kTile; line += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(panel + kCodesAhead + line), _MM_HINT_T0);
    }
    const __m512 scale = sixteen_halves(panel);
    __m512i codes[8];
    load_codes<code>(panel + kHeader, codes);
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row) {
      const std::int8_t* const inputs = codes_of[row] + group * kCodedGroup;
      const std::int32_t sum = sums_of[row][group];
      __m512i even = _mm512_set1_epi32(-zero_of(code) * sum);
      __m512i odd = _mm512_setzero_si512();
#pragma GCC unroll 4
      for (int part = 0; part < 4; ++part) {
        even = _mm512_dpbusd_epi32(even, codes[2 * part], four_codes(inputs + 8 * part));
        odd = _mm512_dpbusd_epi32(odd, codes[2 * part + 1], four_codes(inputs + 8 * part + 4));
      }
      const float row_scale = scales_of[row][group];
      const __m512 product = _mm512_cvtepi32_ps(_mm512_add_epi32(even, odd));
      total[row] = _mm512_fmadd_ps(product, _mm512_mul_ps(scale, _mm512_set1_ps(row_scale)), total[row]);
      if constexpr (code == WeightCode::q4_least) {
        total[row] = _mm512_fmadd_ps(sixteen_halves(panel + 2 * kCodedOutputs),
                                     _mm512_set1_ps(row_scale * static_cast<float>(sum)), total[row]);
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
void multiply_vnni(const std::byte* panel, const CodedRows& x, std::int64_t first, std::int64_t count, float* sums,
                   std::int64_t stride) {
  constexpr std::array<Multiply, kMostRows> kTable{multiply_rows_vnni<code, 1>, multiply_rows_vnni<code, 2>,
                                                   multiply_rows_vnni<code, 3>, multiply_rows_vnni<code, 4>,
                                                   multiply_rows_vnni<code, 5>, multiply_rows_vnni<code, 6>,
                                                   multiply_rows_vnni<code, 7>, multiply_rows_vnni<code, 8>};
  kTable[static_cast<std::size_t>(count - 1)](panel, x, first, sums, stride);
}

}  // namespace

MultiplyPanel avx512_vnni_kernel(WeightCode code) {
  return for_code(code, multiply_vnni<WeightCode::q8>, multiply_vnni<WeightCode::q4>,
                  multiply_vnni<WeightCode::q4_least>);
}

}  // namespace decodelab::codes

#else

namespace decodelab::codes {
MultiplyPanel avx512_vnni_kernel(WeightCode code) { return portable_kernel(code); }
}  // namespace decodelab::codes

#endif
