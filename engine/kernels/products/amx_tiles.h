// Products of bf16 on the tile registers of AMX, and the order of packed weights for them.
#pragma once

#include "engine/kernels/products/packed_matrix.h"
#include "engine/kernels/products/tile_registers.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace decodelab::amx {

inline constexpr std::int64_t kInputBytes = 2;
inline constexpr std::int64_t kTileWeights = kTileRows * kTileBytes;  ///< Bytes: 16 pairs of inputs by 16 outputs.

// A block is two tiles of rows by two of outputs, so that each tile that is loaded is multiplied twice. The numbers of
// tiles are part of the instructions' names: 0 to 3 hold its sums, 4 and 5 inputs, 6 and 7 weights.
inline constexpr std::int64_t kBlockOutputs = 2 * kTileOutputs;
inline constexpr std::int64_t kBlockTiles = 6;  ///< Tiles that have the rows of the block: the `count` of Tiles.

[[gnu::target("amx-tile"), gnu::always_inline]] inline void zero_block() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

/// Load and store the sums of a block, [2 * rows of a tile][stride] fp32, of which 32 columns are the block's.
[[gnu::target("amx-tile"), gnu::always_inline]] inline void load_block(const float* sums, std::int64_t tile_rows,
                                                                       std::int64_t stride) {
  const float* const lower = sums + tile_rows * stride;
  const auto bytes = stride * static_cast<std::int64_t>(sizeof(float));
  _tile_loadd(0, sums, bytes);
  _tile_loadd(1, sums + kTileOutputs, bytes);
  _tile_loadd(2, lower, bytes);
  _tile_loadd(3, lower + kTileOutputs, bytes);
}
[[gnu::target("amx-tile"), gnu::always_inline]] inline void store_block(float* sums, std::int64_t tile_rows,
                                                                        std::int64_t stride) {
  float* const lower = sums + tile_rows * stride;
  const auto bytes = stride * static_cast<std::int64_t>(sizeof(float));
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + kTileOutputs, bytes);
  _tile_stored(2, lower, bytes);
  _tile_stored(3, lower + kTileOutputs, bytes);
}

/// Bytes of the weights of a step of a block: 32 inputs by 32 outputs.
inline constexpr std::int64_t kStepBytes = 2 * kTileWeights;

struct DoNothing {
  void operator()(std::int64_t) const {}
};

/// Adds the products of 32 inputs: `x` is [2 * rows of a tile][32] bf16, `weights` is a tile of 16 outputs followed by
/// a tile of the next 16. `before_weights(tile)` is called before each of them is loaded. Prefetches of later weights
/// belong there: with a K of 768 and 32 rows, weights came at 22 GB/s when all of a step were prefetched at once, and
/// at 29, as fast as they could be read, when they were prefetched before each tile.
template <typename BeforeWeights = DoNothing>
[[gnu::target("amx-tile,amx-bf16"), gnu::always_inline]] inline void add_step(
    const std::byte* x, std::int64_t tile_rows, const std::byte* weights, const BeforeWeights& before_weights = {}) {
  _tile_loadd(4, x, kTileBytes);
  before_weights(0);
  _tile_loadd(6, weights, kTileBytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(5, x + tile_rows * kTileBytes, kTileBytes);
  _tile_dpbf16ps(2, 5, 6);
  before_weights(1);
  _tile_loadd(7, weights + kTileWeights, kTileBytes);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(3, 5, 7);
}

/// Copies steps [begin, end) of a row of activations to where tiles are loaded from, `step_bytes` apart, with zeros
/// past the last input.
inline void pack_row(const SkinnyProduct& product, std::int64_t row, std::int64_t begin, std::int64_t end,
                     std::int64_t step_bytes, std::byte* to) {
  const auto* const x = static_cast<const std::byte*>(product.x) + row * product.x_stride * kInputBytes;
  const std::int64_t inputs = product.weights.inputs();
  const std::int64_t whole_end = std::min(end, inputs / kTileInputs);
  for (std::int64_t step = begin; step < whole_end; ++step, to += step_bytes) {
    std::memcpy(to, x + step * kTileBytes, kTileBytes);
  }
  if (whole_end == end) {
    return;
  }
  std::memset(to, 0, kTileBytes);
  std::memcpy(to, x + whole_end * kTileBytes, static_cast<std::size_t>(inputs % kTileInputs * kInputBytes));
}

/// Returns the weights of 32 outputs in WeightOrder::tiles: half a panel.
inline const std::byte* strip_of(const PackedMatrix& weights, std::int64_t strip) {
  return weights.panel(0) + strip * divided_up(weights.inputs(), kTileInputs) * kStepBytes;
}

}  // namespace decodelab::amx
#endif
