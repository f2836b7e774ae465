// The parts of skinny products: inner loops for each instruction set, and the epilogue.
#pragma once

#include <cstdint>

#include "engine/kernels/products/packed_matrix.h"

namespace decodelab::skinny {

/// Adds the products of inputs [0, depth) of one panel to `sums`, [rows][64] fp32. `depth` counts inputs in fp32 and
/// pairs of inputs in bf16. `x` is the first of those inputs of row 0, and rows are `stride` bytes apart.
using AddPanel = void (*)(const std::byte* panel, const std::byte* x, std::int64_t stride, std::int64_t rows,
                          std::int64_t depth, float* sums);

/// Cuts rows into passes of at most `most` rows and of nearly equal size: 8 rows are 4 and 4, not 6 and 2, since a pass
/// of few rows waits for its weights. `run(first, count, pass, passes)` runs one pass.
template <typename Run>
void in_passes(std::int64_t rows, std::int64_t most, Run&& run) {
  const std::int64_t passes = divided_up(rows, most);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const std::int64_t first = rows * pass / passes;
    run(first, rows * (pass + 1) / passes - first, pass, passes);
  }
}

AddPanel portable_kernel(ElementType dtype);
AddPanel avx2_kernel(ElementType dtype);
AddPanel avx512_kernel(ElementType dtype);
AddPanel avx512_bf16_kernel();

/// Do what multiply_panels() does in bf16, on the tiles of a processor that has them (CpuIsa::amx_bf16): for few rows,
/// where weights are the bottleneck, and for many, where the tiles are. Both add the products of an output in the same
/// order.
void multiply_on_tiles(const SkinnyProduct& product, std::int64_t first, std::int64_t last);
void multiply_many_on_tiles(const SkinnyProduct& product, std::int64_t first, std::int64_t last);

}  // namespace decodelab::skinny
