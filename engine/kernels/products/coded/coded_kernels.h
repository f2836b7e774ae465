// The inner loops of products by coded weights, for each instruction set.
#pragma once

#include <cstdint>

#include "engine/kernels/products/coded/coded_matrix.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace decodelab::codes {

/// Most rows of activations that a kernel multiplies in one pass over a panel.
inline constexpr std::int64_t kMostRows = 8;

/// Writes the products of rows [first, first + count) of `x`, 1 to kMostRows of them, by the 16 outputs of one panel;
/// those of the next row stand `stride` floats further.
using MultiplyPanel = void (*)(const std::byte* panel, const CodedRows& x, std::int64_t first, std::int64_t count,
                               float* sums, std::int64_t stride);

MultiplyPanel portable_kernel(WeightCode code);
MultiplyPanel avx2_kernel(WeightCode code);
MultiplyPanel avx512_vnni_kernel(WeightCode code);

/// Fewest rows that are worth filling tiles with weights for; of q8_row as many as a block of tiles has.
constexpr std::int64_t fewest_on_tiles(WeightCode code) { return scales_rows(code) ? 32 : 24; }
/// Does what multiply_coded() does, for fewest_on_tiles() rows or more.
using MultiplyMany = void (*)(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output,
                              std::int64_t first, std::int64_t last);
MultiplyMany amx_int8_kernel(WeightCode code);
/// Does it for q8_row.
void multiply_row_scaled_on_tiles(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output,
                                  std::int64_t first, std::int64_t last);

/// Calls finish_sums() for `rows` rows of y, of which `row` is the first.
inline void finish_rows(ProductOutput output, std::int64_t row, const float* sums, std::int64_t rows,
                        std::int64_t first, std::int64_t width) {
  const auto size = static_cast<std::int64_t>(element_bytes(output.dtype));
  output.y = static_cast<std::byte*>(output.y) + row * output.y_stride * size;
  finish_sums(output, sums, rows, first, width, best_cpu_isa());
}

/// A group of a panel.
struct GroupAt {
  const std::byte* span;  ///< Begins with the scales; of q8_row the panel.
  std::int64_t group;     ///< In its span.
  const std::byte* codes;
};

template <WeightCode code>
[[gnu::always_inline]] inline GroupAt group_at(const std::byte* panel, std::int64_t group) {
  constexpr std::int64_t kTogether = groups_of_span(code);
  const std::byte* const span = panel + header_bytes(code) + group / kTogether * span_bytes(code);
  return {.span = scales_rows(code) ? panel : span,
          .group = group % kTogether,
          .codes = span + codes_begin(code, group % kTogether)};
}

#if defined(__x86_64__)
/// What q4_k multiplies scales and least weights by, a byte for each output.
struct StepsOfQ4K {
  __m128i of_scale;
  __m128i of_least;
};

/// Unpacks them from the bytes that stand before the codes (coded_layout.h): the lower bits of one group, and the upper
/// ones of two.
[[gnu::always_inline]] inline StepsOfQ4K steps_of_q4_k(__m128i low, __m128i of_two, std::int64_t group) {
  const __m128i high = group % 2 == 0 ? of_two : _mm_srli_epi16(of_two, 4);
  const __m128i four = _mm_set1_epi8(15);
  const __m128i two = _mm_set1_epi8(0x30);
  return {.of_scale = _mm_or_si128(_mm_and_si128(low, four), _mm_and_si128(_mm_slli_epi16(high, 4), two)),
          .of_least =
              _mm_or_si128(_mm_and_si128(_mm_srli_epi16(low, 4), four), _mm_and_si128(_mm_slli_epi16(high, 2), two))};
}
#endif

/// Whether the two halves of a group have scales of their own, so that each is summed for itself.
constexpr bool has_halves(WeightCode code) { return code == WeightCode::q6_k; }
/// Whether codes have eight bits.
constexpr bool has_eight_bits(WeightCode code) { return code == WeightCode::q8 || code == WeightCode::q8_row; }
constexpr bool has_least(WeightCode code) { return code == WeightCode::q4_least || code == WeightCode::q4_k; }

/// Returns the instance of a kernel for that code: `Kernel<code>::multiply`.
template <template <WeightCode> typename Kernel>
constexpr auto for_code(WeightCode code) -> decltype(&Kernel<WeightCode::q8>::multiply) {
  switch (code) {
    case WeightCode::q8: return Kernel<WeightCode::q8>::multiply;
    case WeightCode::q8_row: return Kernel<WeightCode::q8_row>::multiply;
    case WeightCode::q4: return Kernel<WeightCode::q4>::multiply;
    case WeightCode::q4_least: return Kernel<WeightCode::q4_least>::multiply;
    case WeightCode::q4_k: return Kernel<WeightCode::q4_k>::multiply;
    case WeightCode::q6_k: return Kernel<WeightCode::q6_k>::multiply;
  }
  return nullptr;
}

}  // namespace decodelab::codes
