// The tile registers of AMX, what is multiplied with them, and how packed weights in bf16 lie for them. Intel SDM 1,
// chapter 18.
#pragma once

#include "engine/kernels/products/packed_matrix.h"

#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <immintrin.h>

namespace decodelab::amx {

inline constexpr std::int64_t kTileRows = 16;   ///< At most, of any tile.
inline constexpr std::int64_t kTileBytes = 64;  ///< Of a row: 16 sums, 16 outputs' pairs of weights, or 32 inputs.

inline constexpr std::int64_t kInputBytes = 2;
inline constexpr std::int64_t kTileWeights = kTileRows * kTileBytes;  ///< Bytes: 16 pairs of inputs by 16 outputs.

struct alignas(kTileBytes) TileLine {
  std::array<std::byte, kTileBytes> bytes;
};

/// Memory of at least so many lines, whose contents are undefined.
inline std::byte* lines_of(std::vector<TileLine>& scratch, std::int64_t lines) {
  if (std::ssize(scratch) < lines) {
    scratch.resize(static_cast<std::size_t>(lines));
  }
  return scratch.front().bytes.data();
}

/// This thread's tiles while it multiplies: `count` of them, from 0, have `rows` rows for sums and activations, the
/// others 16 for weights.
class Tiles {
 public:
  Tiles(std::int64_t rows, std::int64_t count) {
    Shapes shapes;
    std::fill_n(shapes.bytes.begin(), kTiles, static_cast<std::uint16_t>(kTileBytes));
    std::fill_n(shapes.rows.begin(), kTiles, static_cast<std::uint8_t>(kTileRows));
    std::fill_n(shapes.rows.begin(), count, static_cast<std::uint8_t>(rows));
    // Not _tile_loadconfig: g++ 12 has it read eight bytes, and may leave the others unwritten.
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  [[gnu::target("amx-tile")]] ~Tiles() { _tile_release(); }

 private:
  static constexpr int kTiles = 8;

  /// What ldtilecfg reads.
  struct alignas(64) Shapes {
    std::uint8_t palette = 1;
    std::array<std::uint8_t, 15> unused{};
    std::array<std::uint16_t, 16> bytes{};
    std::array<std::uint8_t, 16> rows{};
  };
  static_assert(sizeof(Shapes) == 64);
};

// A block is two tiles of rows by two of outputs, so that each tile that is loaded is multiplied twice. The numbers of
// tiles are part of the instructions' names: 0 to 3 hold its sums, 4 and 5 inputs, 6 and 7 weights.
inline constexpr std::int64_t kBlockOutputs = 2 * kTileOutputs;
inline constexpr std::int64_t kBlockTiles = 6;  ///< Whose rows are those of the block: what Tiles is to be made with.

[[gnu::target("amx-tile"), gnu::always_inline]] inline void zero_block() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

/// Sums are [2 * rows of a tile][stride] fp32, of which 32 are the block's.
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

/// Of the weights of a block: 32 inputs by 32 outputs.
inline constexpr std::int64_t kStepBytes = 2 * kTileWeights;

struct DoNothing {
  void operator()(std::int64_t) const {}
};

/// Adds the products of 32 inputs: `x` is [2 * rows of a tile][32] bf16, `weights` the tiles of 16 outputs and of the
/// 16 next. `before_weights(tile)` is called before each of those is loaded. What asks for weights that come later asks
/// there: with a K of 768 and 32 rows, asking for all of a step at once left them to come at 22 GB/s, asking before
/// each tile at 29, as fast as they could be read.
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

/// Brings steps [begin, end) of a row of activations to where tiles are loaded from, `step_bytes` apart, zeros behind
/// the last input.
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

/// The weights of 32 outputs in WeightOrder::tiles: half a panel.
inline const std::byte* strip_of(const PackedMatrix& weights, std::int64_t strip) {
  return weights.panel(0) + strip * divided_up(weights.inputs(), kTileInputs) * kStepBytes;
}

}  // namespace decodelab::amx
#endif
