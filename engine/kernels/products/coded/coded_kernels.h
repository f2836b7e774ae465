// The inner loops of products by coded weights, for each instruction set.
#pragma once

#include <cstdint>

#include "engine/kernels/products/coded/coded_matrix.h"

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

/// Returns the one of three functions that is for that code.
constexpr MultiplyPanel for_code(WeightCode code, MultiplyPanel q8, MultiplyPanel q4, MultiplyPanel q4_least) {
  return code == WeightCode::q8 ? q8 : code == WeightCode::q4 ? q4 : q4_least;
}

}  // namespace decodelab::codes
