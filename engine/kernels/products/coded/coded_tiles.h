// What products by coded weights on tiles (AMX) have in common: how rows are cut so that caches hold them.
#pragma once

#include "engine/kernels/products/coded/coded_avx512.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstdint>

#include "base/round_up.h"

#define DECODELAB_AMX_INT8 "amx-tile,amx-int8," DECODELAB_VNNI

namespace decodelab::codes {

/// Calls `chunk(first, last)` for parts of the rows that leave space for weights in a second-level cache of 2 MiB. Each
/// has whole blocks, or begins with rows of the one before it where less than a block is left; there are at least
/// `block` rows.
template <typename Chunk>
void for_each_chunk(std::int64_t rows, std::int64_t row_bytes, std::int64_t block, const Chunk& chunk) {
  constexpr std::int64_t kChunkBytes = 768 << 10;
  const std::int64_t chunks = divided_up(rows * row_bytes, kChunkBytes);
  const std::int64_t chunk_rows = rounded_up(divided_up(rows, chunks), block);
  for (std::int64_t row = 0; row < rows; row += chunk_rows) {
    const std::int64_t end = std::min(row + chunk_rows, rows);
    chunk(std::min(row, end - block), end);
  }
}

}  // namespace decodelab::codes
#endif
