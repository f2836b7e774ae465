// Products by coded weights with registers of 32 bytes: four inputs of 8 outputs in each.
#include "engine/kernels/products/coded/coded_kernels.h"

#if defined(__x86_64__)
#include <cstring>

#include <immintrin.h>

namespace decodelab::codes {
namespace {

constexpr int kOutputsOfHalf = 8;
constexpr int kHalfBytes = 32;

[[gnu::target("avx2,fma,f16c"), gnu::always_inline]] inline __m256 eight_halves(const std::byte* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::target("avx2,fma,f16c"), gnu::always_inline]] inline __m256i bytes_at(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
[[gnu::target("avx2,fma,f16c"), gnu::always_inline]] inline __m256i four_in_all(const std::int8_t* codes) {
  std::int32_t all;
  std::memcpy(&all, codes, sizeof all);
  return _mm256_set1_epi32(all);
}

/// Returns the sums over the 32 inputs of a group for 8 outputs, without what zero_of() takes.
template <WeightCode code>
[[gnu::target("avx2,fma,f16c"), gnu::always_inline]] inline __m256i products(const std::byte* codes,
                                                                             const std::int8_t* inputs) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  if constexpr (code == WeightCode::q8) {
    const __m256i top = _mm256_set1_epi8(static_cast<char>(0x80));
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) {
      // A product of bytes takes one without a sign, and pairs of products are cut at 16 bits: -128 x 127 twice fits.
      const __m256i weights = _mm256_xor_si256(bytes_at(codes + part * 2 * kHalfBytes), top);
      const __m256i pairs =
          _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(four_in_all(inputs + 4 * part), weights));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
  } else {
    const __m256i low = _mm256_set1_epi8(15);
    __m256i pairs = _mm256_setzero_si256();  // 8 x 2 x 15 x 127 fits into 16 bits.
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const __m256i both = bytes_at(codes + part * 2 * kHalfBytes);
      pairs =
          _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_and_si256(both, low), four_in_all(inputs + 8 * part)));
      pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(both, 4), low),
                                                           four_in_all(inputs + 8 * part + 4)));
    }
    sum = _mm256_madd_epi16(pairs, ones);
  }
  return sum;
}

template <WeightCode code>
[[gnu::target("avx2,fma,f16c")]] void multiply_avx2(const std::byte* panel, const CodedRows& x, std::int64_t first,
                                                    std::int64_t count, float* sums, std::int64_t stride) {
  constexpr std::int64_t kHeader = CodedMatrix::header_bytes(code);
  constexpr std::int64_t kTile = CodedMatrix::tile_bytes(code);
  __m256 total[kMostRows][2];
  for (std::int64_t row = 0; row < count; ++row) {
    total[row][0] = total[row][1] = _mm256_setzero_ps();
  }
  for (std::int64_t group = 0; group < x.groups(); ++group, panel += kTile) {
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int8_t* const inputs = x.codes(first + row) + group * kCodedGroup;
      const std::int32_t sum = x.sums(first + row)[group];
      const float scale = x.scales(first + row)[group];
      // The signed codes of q8 have had their zero taken already.
      const __m256i zero = _mm256_set1_epi32(code == WeightCode::q8 ? 0 : zero_of(code) * sum);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m256i product = _mm256_sub_epi32(products<code>(panel + kHeader + half * kHalfBytes, inputs), zero);
        const __m256 scales = _mm256_mul_ps(eight_halves(panel + half * 2 * kOutputsOfHalf), _mm256_set1_ps(scale));
        total[row][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(product), scales, total[row][half]);
        if constexpr (code == WeightCode::q4_least) {
          total[row][half] = _mm256_fmadd_ps(eight_halves(panel + 2 * kCodedOutputs + half * 2 * kOutputsOfHalf),
                                             _mm256_set1_ps(scale * static_cast<float>(sum)), total[row][half]);
        }
      }
    }
  }
  for (std::int64_t row = 0; row < count; ++row) {
    _mm256_storeu_ps(sums + row * stride, total[row][0]);
    _mm256_storeu_ps(sums + row * stride + kOutputsOfHalf, total[row][1]);
  }
}

}  // namespace

MultiplyPanel avx2_kernel(WeightCode code) {
  return for_code(code, multiply_avx2<WeightCode::q8>, multiply_avx2<WeightCode::q4>,
                  multiply_avx2<WeightCode::q4_least>);
}

}  // namespace decodelab::codes

#else

namespace decodelab::codes {
MultiplyPanel avx2_kernel(WeightCode code) { return portable_kernel(code); }
}  // namespace decodelab::codes

#endif
