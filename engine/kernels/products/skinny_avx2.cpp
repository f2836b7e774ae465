// Skinny products with registers of 32 bytes: 16 outputs at a time, a quarter of a panel, with up to six rows.
#include "engine/kernels/products/skinny_kernels.h"

#if defined(__x86_64__)
#include <array>
#include <cstring>

#include <immintrin.h>

namespace decodelab::skinny {
namespace {

constexpr int kParts = 2;
constexpr int kLanes = 8;
constexpr int kOutputs = kParts * kLanes;
constexpr int kStepBytes = kPanelOutputs * 4;
constexpr int kMostRows = 6;  ///< 12 sums, 2 registers of weights and the broadcasts fill all 16 registers.

template <int Rows>
using Sums = __m256[Rows][kParts];

[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256i broadcast(const std::byte* x) {
  std::int32_t bytes;
  std::memcpy(&bytes, x, sizeof bytes);
  return _mm256_set1_epi32(bytes);
}
[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256 first_of(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256 second_of(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
}

template <bool Pairs, int Rows>
[[gnu::target("avx2,fma")]] void add_quarter(const std::byte* panel, const std::byte* x, std::int64_t stride,
                                             std::int64_t depth, float* sums) {
  Sums<Rows> total;
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      total[row][part] = _mm256_loadu_ps(sums + row * kPanelOutputs + part * kLanes);
    }
  }
  for (std::int64_t step = 0; step < depth; ++step, panel += kStepBytes, x += 4) {
    const __m256i weights[kParts] = {_mm256_load_si256(reinterpret_cast<const __m256i*>(panel)),
                                     _mm256_load_si256(reinterpret_cast<const __m256i*>(panel) + 1)};
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row) {
      const __m256i input = broadcast(x + row * stride);
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        if constexpr (Pairs) {
          total[row][part] = _mm256_fmadd_ps(first_of(weights[part]), first_of(input), total[row][part]);
          total[row][part] = _mm256_fmadd_ps(second_of(weights[part]), second_of(input), total[row][part]);
        } else {
          total[row][part] =
              _mm256_fmadd_ps(_mm256_castsi256_ps(weights[part]), _mm256_castsi256_ps(input), total[row][part]);
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      _mm256_storeu_ps(sums + row * kPanelOutputs + part * kLanes, total[row][part]);
    }
  }
}

using Pass = void (*)(const std::byte*, const std::byte*, std::int64_t, std::int64_t, float*);
using Passes = std::array<Pass, kMostRows>;
template <bool Pairs>
constexpr Passes kPasses{add_quarter<Pairs, 1>, add_quarter<Pairs, 2>, add_quarter<Pairs, 3>,
                         add_quarter<Pairs, 4>, add_quarter<Pairs, 5>, add_quarter<Pairs, 6>};

template <bool Pairs>
void add_rows(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
              float* sums) {
  in_passes(rows, kMostRows, [&](std::int64_t first, std::int64_t count, std::int64_t, std::int64_t) {
    for (int quarter = 0; quarter < kPanelOutputs / kOutputs; ++quarter) {
      kPasses<Pairs>[static_cast<std::size_t>(count - 1)](panel + quarter * kOutputs * 4, x + first * stride, stride,
                                                          depth, sums + first * kPanelOutputs + quarter * kOutputs);
    }
  });
}

}  // namespace

AddPanel avx2_kernel(ElementType dtype) { return dtype == ElementType::bfloat16 ? add_rows<true> : add_rows<false>; }

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
AddPanel avx2_kernel(ElementType dtype) { return portable_kernel(dtype); }
}  // namespace decodelab::skinny

#endif
