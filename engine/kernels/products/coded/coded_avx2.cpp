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

#define DECODELAB_INLINE_AVX2 [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] inline

/// Returns the products of eight signed codes of weights, four inputs of 8 outputs, with four inputs, in pairs.
DECODELAB_INLINE_AVX2 __m256i signed_pairs(__m256i weights, const std::int8_t* inputs) {
  // A product of bytes takes one without a sign, and pairs of products are cut at 16 bits: -128 x 127 twice fits.
  return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(four_in_all(inputs), weights));
}

/// Returns the codes of inputs 4 part to 4 part + 3 of 8 outputs, without a sign.
template <WeightCode code>
DECODELAB_INLINE_AVX2 __m256i codes_of(const std::byte* codes, int part) {
  const __m256i both = bytes_at(codes + part / 2 * 2 * kHalfBytes);
  const __m256i low = _mm256_set1_epi8(15);
  const __m256i lower = _mm256_and_si256(part % 2 == 0 ? both : _mm256_srli_epi16(both, 4), low);
  if constexpr (code != WeightCode::q6_k) {
    return lower;
  }
  const __m256i upper = bytes_at(codes + kFourBits + part / 4 * 2 * kHalfBytes);
  const __m256i at_two = part % 4 == 0   ? _mm256_slli_epi16(upper, 4)
                         : part % 4 == 1 ? _mm256_slli_epi16(upper, 2)
                         : part % 4 == 2 ? upper
                                         : _mm256_srli_epi16(upper, 2);
  return _mm256_or_si256(lower, _mm256_and_si256(at_two, _mm256_set1_epi8(0x30)));
}

/// Returns the sums over inputs [4 first, 4 last) of a group for 8 outputs, without what zero_of() takes.
template <WeightCode code, int first, int last>
DECODELAB_INLINE_AVX2 __m256i products(const std::byte* codes, const std::int8_t* inputs) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  if constexpr (has_eight_bits(code)) {
    const __m256i top = _mm256_set1_epi8(static_cast<char>(0x80));
#pragma GCC unroll 8
    for (int part = first; part < last; ++part) {
      const __m256i weights = _mm256_xor_si256(bytes_at(codes + part * 2 * kHalfBytes), top);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(signed_pairs(weights, inputs + 4 * part), ones));
    }
    return sum;
  }
  // Sums of 16 bits hold 8 times 2 x 15 x 127, and 2 times 2 x 63 x 127.
  constexpr int kTogether = code == WeightCode::q6_k ? 2 : 8;
#pragma GCC unroll 4
  for (int begin = first; begin < last; begin += kTogether) {
    __m256i pairs = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int part = begin; part < begin + kTogether; ++part) {
      pairs =
          _mm256_add_epi16(pairs, _mm256_maddubs_epi16(codes_of<code>(codes, part), four_in_all(inputs + 4 * part)));
    }
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
  }
  return sum;
}

/// The scales of both halves of a group, and its least weights, of 8 outputs.
struct Scales256 {
  __m256 of_half[2];
  __m256 least;
};

DECODELAB_INLINE_AVX2 __m128i eight_bytes(const std::byte* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}

/// `outputs` are the first 8 or the last 8.
template <WeightCode code>
DECODELAB_INLINE_AVX2 Scales256 scales_of(const GroupAt& at, int outputs) {
  const std::int64_t begin = outputs * kOutputsOfHalf;
  const __m256 scale = eight_halves(at.span + 2 * begin);
  Scales256 scales{.of_half = {scale, scale}, .least = _mm256_setzero_ps()};
  if constexpr (has_least(code)) {
    scales.least = eight_halves(at.span + 2 * kOutputs + 2 * begin);
  }
  if constexpr (code == WeightCode::q4_k) {
    const StepsOfQ4K steps =
        steps_of_q4_k(eight_bytes(at.span + kStepsOfQ4K + at.group * kOutputs + begin),
                      eight_bytes(at.span + kUpperStepsOfQ4K + at.group / 2 * kOutputs + begin), at.group);
    scales.of_half[0] = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(steps.of_scale)));
    scales.least = _mm256_mul_ps(_mm256_sub_ps(_mm256_setzero_ps(), scales.least),
                                 _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(steps.of_least)));
  }
  if constexpr (code == WeightCode::q6_k) {
    for (int half = 0; half < 2; ++half) {
      const __m128i steps = eight_bytes(at.codes - kStepsOfQ6K + half * kOutputs + begin);
      scales.of_half[half] = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(steps)));
    }
  }
  return scales;
}

template <WeightCode code>
struct Avx2 {
  [[gnu::target("avx2,fma,f16c")]] static void multiply_row_scaled(const std::byte* panel, const CodedRows& x,
                                                                   std::int64_t first, std::int64_t count, float* sums,
                                                                   std::int64_t stride) {
    __m256i products_of[kMostRows][2];
    for (std::int64_t row = 0; row < count; ++row) {
      products_of[row][0] = products_of[row][1] = _mm256_setzero_si256();
    }
    for (std::int64_t group = 0; group < x.groups(); ++group) {
      const GroupAt at = group_at<code>(panel, group);
      for (std::int64_t row = 0; row < count; ++row) {
        const std::int8_t* const inputs = x.codes(first + row) + group * kCodedGroup;
#pragma GCC unroll 2
        for (int outputs = 0; outputs < 2; ++outputs) {
          products_of[row][outputs] = _mm256_add_epi32(products_of[row][outputs],
                                                       products<code, 0, 8>(at.codes + outputs * kHalfBytes, inputs));
        }
      }
    }
    for (std::int64_t row = 0; row < count; ++row) {
      const __m256 scale = _mm256_set1_ps(x.scales(first + row)[0]);
      for (int outputs = 0; outputs < 2; ++outputs) {
        const __m256 scales = eight_halves(panel + 2 * outputs * kOutputsOfHalf);
        _mm256_storeu_ps(sums + row * stride + outputs * kOutputsOfHalf,
                         _mm256_mul_ps(_mm256_cvtepi32_ps(products_of[row][outputs]), _mm256_mul_ps(scales, scale)));
      }
    }
  }
  [[gnu::target("avx2,fma,f16c")]] static void multiply(const std::byte* panel, const CodedRows& x, std::int64_t first,
                                                        std::int64_t count, float* sums, std::int64_t stride) {
    // The signed codes of q8 have had their zero taken already.
    constexpr std::int32_t kZero = has_eight_bits(code) ? 0 : zero_of(code);
    if constexpr (scales_rows(code)) {
      return multiply_row_scaled(panel, x, first, count, sums, stride);
    }
    __m256 total[kMostRows][2];
    for (std::int64_t row = 0; row < count; ++row) {
      total[row][0] = total[row][1] = _mm256_setzero_ps();
    }
    for (std::int64_t group = 0; group < x.groups(); ++group) {
      const GroupAt at = group_at<code>(panel, group);
      const Scales256 scales[2] = {scales_of<code>(at, 0), scales_of<code>(at, 1)};
      for (std::int64_t row = 0; row < count; ++row) {
        const std::int8_t* const inputs = x.codes(first + row) + group * kCodedGroup;
        const std::int32_t sum = x.sums(first + row)[group];
        const std::int32_t first_sum = x.first_sums(first + row)[group];
        const __m256 scale = _mm256_set1_ps(x.scales(first + row)[group]);
#pragma GCC unroll 2
        for (int outputs = 0; outputs < 2; ++outputs) {
          const std::byte* const codes = at.codes + outputs * kHalfBytes;
          __m256& here = total[row][outputs];
          if constexpr (has_halves(code)) {
            const __m256i low =
                _mm256_sub_epi32(products<code, 0, 4>(codes, inputs), _mm256_set1_epi32(kZero * first_sum));
            const __m256i high =
                _mm256_sub_epi32(products<code, 4, 8>(codes, inputs), _mm256_set1_epi32(kZero * (sum - first_sum)));
            here = _mm256_fmadd_ps(_mm256_cvtepi32_ps(low), _mm256_mul_ps(scales[outputs].of_half[0], scale), here);
            here = _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_mul_ps(scales[outputs].of_half[1], scale), here);
          } else {
            const __m256i product =
                _mm256_sub_epi32(products<code, 0, 8>(codes, inputs), _mm256_set1_epi32(kZero * sum));
            here = _mm256_fmadd_ps(_mm256_cvtepi32_ps(product), _mm256_mul_ps(scales[outputs].of_half[0], scale), here);
          }
          if constexpr (has_least(code)) {
            const float of_sum = x.scales(first + row)[group] * static_cast<float>(sum);
            here = _mm256_fmadd_ps(scales[outputs].least, _mm256_set1_ps(of_sum), here);
          }
        }
      }
    }
    for (std::int64_t row = 0; row < count; ++row) {
      _mm256_storeu_ps(sums + row * stride, total[row][0]);
      _mm256_storeu_ps(sums + row * stride + kOutputsOfHalf, total[row][1]);
    }
  }
};

}  // namespace

MultiplyPanel avx2_kernel(WeightCode code) { return for_code<Avx2>(code); }

}  // namespace decodelab::codes

#else

namespace decodelab::codes {
MultiplyPanel avx2_kernel(WeightCode code) { return portable_kernel(code); }
}  // namespace decodelab::codes

#endif
