// The inner loops of skinny products, one for each set of instructions.
#pragma once

#include "engine/kernels/packed_matrix.h"

#include <cstdint>

namespace decodelab::skinny {

/// Adds the products of inputs [0, depth) of one panel to `sums`, [rows][64] fp32. `depth` counts inputs in fp32 and pairs of inputs in
/// bf16. `x` is the first of those inputs of row 0, and rows follow each other at `stride` bytes.
using AddPanel = void (*)(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows,
                          std::int64_t depth, float* sums);

AddPanel portable_kernel(ElementType dtype);
AddPanel avx2_kernel(ElementType dtype);
AddPanel avx512_kernel(ElementType dtype);
AddPanel avx512_bf16_kernel();

}  // namespace decodelab::skinny
