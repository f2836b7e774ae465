// Skinny products with registers of 64 bytes: 64 outputs stand in four of them, and each input is broadcast.
#include "engine/kernels/skinny_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>
#include <utility>

namespace decodelab::skinny {
namespace {

constexpr int kParts = 4;
constexpr int kLanes = 16;
constexpr int kStepBytes = kPanelOutputs * 4;  // one input in fp32, two in bf16
/// Of a pass: 24 sums, 4 registers of weights and a broadcast fill the 32 registers.
constexpr int kMostRows = 6;
/// How far ahead weights are asked for: the processor's own prefetchers stop at each page of 4 kB.
constexpr int kAheadBytes = 4096;

template <int Rows>
using Sums = __m512[Rows][kParts];

template <int Rows>
[[gnu::target("avx512f"), gnu::always_inline]] inline void load(Sums<Rows>& total, const float* sums) {
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part)
      total[row][part] = _mm512_loadu_ps(sums + row * kPanelOutputs + part * kLanes);
  }
}

template <int Rows>
[[gnu::target("avx512f"), gnu::always_inline]] inline void store(const Sums<Rows>& total, float* sums) {
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part)
      _mm512_storeu_ps(sums + row * kPanelOutputs + part * kLanes, total[row][part]);
  }
}

[[gnu::target("avx512f"), gnu::always_inline]] inline void load_weights(__m512i (&weights)[kParts],
                                                                        const std::byte* panel) {
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
    _mm_prefetch(reinterpret_cast<const char*>(panel + part * 64 + kAheadBytes), _MM_HINT_T0);
    weights[part] = _mm512_load_si512(panel + part * 64);
  }
}

/// The four bytes of one input in fp32 or two in bf16, in all lanes.
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512i broadcast(const std::byte* x) {
  std::int32_t bytes;
  std::memcpy(&bytes, x, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

/// bf16 is the upper half of fp32: of a pair, the first input is the lower half of its lane.
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512 first_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512 second_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_epi32(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
}

template <int Rows>
[[gnu::target("avx512f")]] void add_fp32(const std::byte* panel, const std::byte* x, std::int64_t stride,
                                         std::int64_t depth, float* sums) {
  Sums<Rows> total;
  load<Rows>(total, sums);
  for (std::int64_t step = 0; step < depth; ++step, panel += kStepBytes, x += 4) {
    __m512i weights[kParts];
    load_weights(weights, panel);
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row) {
      const __m512 input = _mm512_castsi512_ps(broadcast(x + row * stride));
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part)
        total[row][part] = _mm512_fmadd_ps(_mm512_castsi512_ps(weights[part]), input, total[row][part]);
    }
  }
  store<Rows>(total, sums);
}

/// bf16 without its dot product: each half of a pair as fp32.
template <int Rows>
[[gnu::target("avx512f")]] void add_widened(const std::byte* panel, const std::byte* x, std::int64_t stride,
                                            std::int64_t depth, float* sums) {
  Sums<Rows> total;
  load<Rows>(total, sums);
  for (std::int64_t step = 0; step < depth; ++step, panel += kStepBytes, x += 4) {
    __m512i weights[kParts];
    load_weights(weights, panel);
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row) {
      const __m512i pair = broadcast(x + row * stride);
      const __m512 first = first_of(pair);
      const __m512 second = second_of(pair);
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        total[row][part] = _mm512_fmadd_ps(first_of(weights[part]), first, total[row][part]);
        total[row][part] = _mm512_fmadd_ps(second_of(weights[part]), second, total[row][part]);
      }
    }
  }
  store<Rows>(total, sums);
}

template <int Rows>
[[gnu::target("avx512f,avx512bf16")]] void add_bf16(const std::byte* panel, const std::byte* x, std::int64_t stride,
                                                    std::int64_t depth, float* sums) {
  Sums<Rows> total;
  load<Rows>(total, sums);
  for (std::int64_t step = 0; step < depth; ++step, panel += kStepBytes, x += 4) {
    __m512i weights[kParts];
    load_weights(weights, panel);
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row) {
      const __m512i input = broadcast(x + row * stride);
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part)
        total[row][part] = _mm512_dpbf16_ps(total[row][part], reinterpret_cast<__m512bh>(weights[part]),
                                            reinterpret_cast<__m512bh>(input));
    }
  }
  store<Rows>(total, sums);
}

using Pass = void (*)(const std::byte*, const std::byte*, std::int64_t, std::int64_t, float*);
using Passes = std::array<Pass, kMostRows>;  ///< For 1, 2, ... rows.
constexpr Passes kFp32{add_fp32<1>, add_fp32<2>, add_fp32<3>, add_fp32<4>, add_fp32<5>, add_fp32<6>};
constexpr Passes kWidened{add_widened<1>, add_widened<2>, add_widened<3>,
                          add_widened<4>, add_widened<5>, add_widened<6>};
constexpr Passes kBf16{add_bf16<1>, add_bf16<2>, add_bf16<3>, add_bf16<4>, add_bf16<5>, add_bf16<6>};

/// Rows in passes of nearly equal size: 8 rows are 4 and 4, not 6 and 2, for a pass of few rows waits for its weights.
template <const Passes& passes>
void add_rows(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
              float* sums) {
  const std::int64_t count = (rows + kMostRows - 1) / kMostRows;
  for (std::int64_t pass = 0; pass < count; ++pass) {
    const std::int64_t first = rows * pass / count;
    const std::int64_t last = rows * (pass + 1) / count;
    passes[static_cast<std::size_t>(last - first - 1)](panel, x + first * stride, stride, depth,
                                                       sums + first * kPanelOutputs);
  }
}

}  // namespace

AddPanel avx512_kernel(ElementType dtype) {
  return dtype == ElementType::bfloat16 ? add_rows<kWidened> : add_rows<kFp32>;
}
AddPanel avx512_bf16_kernel() { return add_rows<kBf16>; }

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
AddPanel avx512_kernel(ElementType dtype) { return portable_kernel(dtype); }
AddPanel avx512_bf16_kernel() { return portable_kernel(ElementType::bfloat16); }
}  // namespace decodelab::skinny

#endif
