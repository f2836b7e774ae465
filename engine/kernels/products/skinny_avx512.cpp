// Skinny products with registers of 64 bytes: 64 outputs stand in four of them, and each input is broadcast.
#include "engine/kernels/products/skinny_kernels.h"

#if defined(__x86_64__)
#include <array>
#include <cstring>

#include <immintrin.h>

namespace decodelab::skinny {
namespace {

constexpr int kParts = 4;
constexpr int kLanes = 16;
constexpr int kStepBytes = kPanelOutputs * 4;  // one input in fp32, two in bf16
/// Rows of a pass: 24 sums, 4 registers of weights and a broadcast fill the 32 registers.
constexpr int kMostRows = 6;
/// Where there are few rows in all: one pass of six took 1.2 times as long as two of four, in which memory and
/// arithmetic overlap, on an AMD Zen 4.
constexpr int kRowsOfFew = 4;
constexpr int kFewRowsOfAll = 8;
/// How far ahead a single pass prefetches weights: the processor's own prefetchers stop at each page of 4 kB. Lines go
/// to the second-level cache; in the first, they would evict the block that is being multiplied.
constexpr int kAheadBytes = 2048;
constexpr int kLineBytes = 64;

template <int Rows>
using Sums = __m512[Rows][kParts];

template <int Rows>
[[gnu::target("avx512f"), gnu::always_inline]] inline void load(Sums<Rows>& total, const float* sums) {
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      total[row][part] = _mm512_loadu_ps(sums + row * kPanelOutputs + part * kLanes);
    }
  }
}

template <int Rows>
[[gnu::target("avx512f"), gnu::always_inline]] inline void store(const Sums<Rows>& total, float* sums) {
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      _mm512_storeu_ps(sums + row * kPanelOutputs + part * kLanes, total[row][part]);
    }
  }
}

[[gnu::target("avx512f"), gnu::always_inline]] inline void load_weights(__m512i (&weights)[kParts],
                                                                        const std::byte* panel) {
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
    weights[part] = _mm512_load_si512(panel + part * kLineBytes);
  }
}

template <int Lines>
[[gnu::always_inline]] inline void prefetch(const std::byte* ahead) {
#pragma GCC unroll 4
  for (int line = 0; line < Lines; ++line) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + line * kLineBytes), _MM_HINT_T1);
  }
}

/// Returns the four bytes of one input in fp32, or of two in bf16, in all lanes.
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512i broadcast(const std::byte* x) {
  std::int32_t bytes;
  std::memcpy(&bytes, x, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

/// Return the first and the second input of pairs of bf16 as fp32: bf16 is the upper half of fp32, and the first input
/// of a pair is the lower half of its lane.
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512 first_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512 second_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_epi32(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
}

/// Says how a register of weights is multiplied by an input: as fp32, as pairs of bf16 each raised to fp32, or by the
/// dot product of pairs.
enum class Multiply { fp32, widened, dot };

/// Multiplies one pass, and prefetches `Lines` lines from `ahead` on in each step. The target is that of the dot
/// product, whose instruction only `dot` uses: the others run on any AVX-512 with byte and word operations.
template <Multiply multiply, int Rows, int Lines>
[[gnu::target("avx512f,avx512bw,avx512bf16")]] void add_pass(const std::byte* panel, const std::byte* ahead,
                                                             const std::byte* x, std::int64_t stride,
                                                             std::int64_t depth, float* sums) {
  Sums<Rows> total;
  load<Rows>(total, sums);
  for (std::int64_t step = 0; step < depth; ++step, panel += kStepBytes, ahead += Lines * kLineBytes, x += 4) {
    __m512i weights[kParts];
    prefetch<Lines>(ahead);
    load_weights(weights, panel);
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row) {
      const __m512i input = broadcast(x + row * stride);
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        __m512& sum = total[row][part];
        if constexpr (multiply == Multiply::fp32) {
          sum = _mm512_fmadd_ps(_mm512_castsi512_ps(weights[part]), _mm512_castsi512_ps(input), sum);
        } else if constexpr (multiply == Multiply::widened) {
          sum = _mm512_fmadd_ps(first_of(weights[part]), first_of(input), sum);
          sum = _mm512_fmadd_ps(second_of(weights[part]), second_of(input), sum);
        } else {
          sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weights[part]), reinterpret_cast<__m512bh>(input));
        }
      }
    }
  }
  store<Rows>(total, sums);
}

using Pass = void (*)(const std::byte*, const std::byte*, const std::byte*, std::int64_t, std::int64_t, float*);
template <Multiply multiply, int Lines>
constexpr std::array<Pass, kMostRows> kPasses{add_pass<multiply, 1, Lines>, add_pass<multiply, 2, Lines>,
                                              add_pass<multiply, 3, Lines>, add_pass<multiply, 4, Lines>,
                                              add_pass<multiply, 5, Lines>, add_pass<multiply, 6, Lines>};

/// A single pass prefetches weights a page ahead of those it reads. With several passes over the same weights, memory
/// would be idle in all but the first: each of them prefetches a part of the next block, so that memory and arithmetic
/// overlap.
template <Multiply multiply>
void add_rows(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
              float* sums) {
  const std::int64_t block = depth * kStepBytes;
  in_passes(rows, rows <= kFewRowsOfAll ? kRowsOfFew : kMostRows,
            [&](std::int64_t first, std::int64_t count, std::int64_t pass, std::int64_t passes) {
              const auto add = [&](const auto& table, const std::byte* ahead) {
                table[static_cast<std::size_t>(count - 1)](panel, ahead, x + first * stride, stride, depth,
                                                           sums + first * kPanelOutputs);
              };
              if (passes == 1) {
                add(kPasses<multiply, 4>, panel + kAheadBytes);
              } else if (passes < 4 && pass < 2) {
                add(kPasses<multiply, 2>, panel + block + pass * block / 2);
              } else if (passes >= 4 && pass < 4) {
                add(kPasses<multiply, 1>, panel + block + pass * block / 4);
              } else {
                add(kPasses<multiply, 0>, panel);
              }
            });
}

}  // namespace

AddPanel avx512_kernel(ElementType dtype) {
  return dtype == ElementType::bfloat16 ? add_rows<Multiply::widened> : add_rows<Multiply::fp32>;
}
AddPanel avx512_bf16_kernel() { return add_rows<Multiply::dot>; }

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
AddPanel avx512_kernel(ElementType dtype) { return portable_kernel(dtype); }
AddPanel avx512_bf16_kernel() { return portable_kernel(ElementType::bfloat16); }
}  // namespace decodelab::skinny

#endif
