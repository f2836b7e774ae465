// Skinny products with registers of 32 bytes: one row by a whole panel, more rows by a half or a quarter of it.
#include "engine/kernels/products/skinny_kernels.h"

#if defined(__x86_64__)
#include <array>
#include <cstring>

#include <immintrin.h>

namespace decodelab::skinny {
namespace {

constexpr int kLanes = 8;
constexpr int kPanelParts = kPanelOutputs / kLanes;
constexpr int kStepBytes = kPanelOutputs * 4;
constexpr int kLineBytes = 64;
/// How far ahead a single pass prefetches weights, as with registers of 64 bytes (skinny_avx512.cpp).
constexpr int kAheadBytes = 2048;
constexpr int kMostRows = 6;  ///< 12 sums, 2 registers of weights and a broadcast fill 15 of 16 registers.
/// Of bf16, whose pairs are taken apart between the products: 128 rows took 53 ms by six, 35 by four, on an AMD Zen 3.
constexpr int kMostRowsOfPairs = 4;

/// Registers of outputs that so many rows are multiplied by at once. One row takes a whole panel, so that its weights
/// are read in the order in which they lie, and enough sums are under way to hide the latency of an addition.
constexpr int parts_of(std::int64_t rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : 2; }

[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256i broadcast(const std::byte* x) {
  std::int32_t bytes;
  std::memcpy(&bytes, x, sizeof bytes);
  return _mm256_set1_epi32(bytes);
}
/// Which number of a word of 32 bits: the one that it is, or one of a pair of bf16.
enum class Number { whole, first, second };
template <Number number>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256 numbers_of(__m256i words) {
  switch (number) {
    case Number::whole: break;
    case Number::first: return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    case Number::second:
      return _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
  }
  return _mm256_castsi256_ps(words);
}

/// Adds the products of one input of each row by its weights. Of rows and parts, those that are fewer stay in registers
/// while the others come one by one: with all of both, some of the twelve sums had no register, and a step waited for
/// them to be stored and loaded again.
template <Number number, int Rows>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void add_inputs(const std::byte* panel, const std::byte* x,
                                                                       std::int64_t stride,
                                                                       __m256 (&total)[Rows][parts_of(Rows)]) {
  constexpr int kParts = parts_of(Rows);
  const auto* const words = reinterpret_cast<const __m256i*>(panel);
  if constexpr (kParts < Rows) {
    __m256 weights[kParts];
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      weights[part] = numbers_of<number>(_mm256_load_si256(words + part));
    }
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row) {
      const __m256 input = numbers_of<number>(broadcast(x + row * stride));
#pragma GCC unroll 8
      for (int part = 0; part < kParts; ++part) {
        total[row][part] = _mm256_fmadd_ps(weights[part], input, total[row][part]);
      }
    }
  } else {
    __m256 inputs[Rows];
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row) {
      inputs[row] = numbers_of<number>(broadcast(x + row * stride));
    }
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      const __m256 weights = numbers_of<number>(_mm256_load_si256(words + part));
#pragma GCC unroll 6
      for (int row = 0; row < Rows; ++row) {
        total[row][part] = _mm256_fmadd_ps(weights, inputs[row], total[row][part]);
      }
    }
  }
}

/// Multiplies `Rows` rows by the first parts_of(Rows) registers of each step, and prefetches `Lines` lines from `ahead`
/// on in each `Every`th step.
template <bool Pairs, int Rows, int Lines, int Every>
[[gnu::target("avx2,fma")]] void add_piece(const std::byte* panel, const std::byte* ahead, const std::byte* x,
                                           std::int64_t stride, std::int64_t depth, float* sums) {
  constexpr int kParts = parts_of(Rows);
  __m256 total[Rows][kParts];
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      total[row][part] = _mm256_loadu_ps(sums + row * kPanelOutputs + part * kLanes);
    }
  }
  for (std::int64_t step = 0; step < depth; ++step, panel += kStepBytes, x += 4) {
    if (Lines > 0 && step % Every == 0) {
#pragma GCC unroll 4
      for (int line = 0; line < Lines; ++line) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead + line * kLineBytes), _MM_HINT_T1);
      }
      ahead += Lines * kLineBytes;
    }
    if constexpr (Pairs) {
      add_inputs<Number::first, Rows>(panel, x, stride, total);
      add_inputs<Number::second, Rows>(panel, x, stride, total);
    } else {
      add_inputs<Number::whole, Rows>(panel, x, stride, total);
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      _mm256_storeu_ps(sums + row * kPanelOutputs + part * kLanes, total[row][part]);
    }
  }
}

using Piece = void (*)(const std::byte*, const std::byte*, const std::byte*, std::int64_t, std::int64_t, float*);
template <bool Pairs, int Lines, int Every = 1>
constexpr std::array<Piece, kMostRows> kPieces{add_piece<Pairs, 1, Lines, Every>, add_piece<Pairs, 2, Lines, Every>,
                                               add_piece<Pairs, 3, Lines, Every>, add_piece<Pairs, 4, Lines, Every>,
                                               add_piece<Pairs, 5, Lines, Every>, add_piece<Pairs, 6, Lines, Every>};

/// A single piece prefetches weights a page ahead of those it reads; several over the same weights each prefetch a part
/// of the next block, so that memory and arithmetic overlap.
template <bool Pairs>
void add_rows(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
              float* sums) {
  const std::int64_t block = depth * kStepBytes;
  in_passes(rows, Pairs ? kMostRowsOfPairs : kMostRows,
            [&](std::int64_t first, std::int64_t count, std::int64_t pass, std::int64_t passes) {
              const std::int64_t pieces = kPanelParts / parts_of(count);
              for (std::int64_t piece = 0; piece < pieces; ++piece) {
                const std::int64_t output = piece * parts_of(count) * kLanes;
                const std::int64_t index = pass * pieces + piece;
                const auto add = [&](const auto& table, const std::byte* ahead) {
                  table[static_cast<std::size_t>(count - 1)](panel + output * 4, ahead, x + first * stride, stride,
                                                             depth, sums + first * kPanelOutputs + output);
                };
                if (passes * pieces == 1) {
                  add(kPieces<Pairs, 4>, panel + kAheadBytes);
                } else if (passes * pieces < 4) {
                  add(kPieces<Pairs, 2>, panel + block + index * block / 2);
                } else if (passes * pieces < 8 && index < 4) {
                  add(kPieces<Pairs, 1>, panel + block + index * block / 4);
                } else if (passes * pieces >= 8 && passes * pieces < 16 && index < 8) {
                  add(kPieces<Pairs, 1, 2>, panel + block + index * block / 8);
                } else if (passes * pieces >= 16 && index < 16) {
                  add(kPieces<Pairs, 1, 4>, panel + block + index * block / 16);
                } else {
                  add(kPieces<Pairs, 0>, panel);
                }
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
