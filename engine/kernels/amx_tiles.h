// The tile registers of AMX, and how packed weights in bf16 lie for them. Intel SDM 1, chapter 18.
#pragma once

#include "engine/kernels/packed_matrix.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace decodelab::skinny {

inline constexpr std::int64_t kTileRows = 16;    ///< At most, of any tile.
inline constexpr std::int64_t kTileBytes = 64;   ///< Of a row: 16 sums, 16 outputs' pairs of weights, or 32 inputs.
inline constexpr std::int64_t kTileInputs = 32;  ///< That one instruction takes: a step.

inline constexpr std::int64_t kInputBytes = 2;
inline constexpr std::int64_t kPairBytes = 2 * kInputBytes;
inline constexpr std::int64_t kWeightStride = kPanelOutputs * kPairBytes;
inline constexpr std::int64_t kStepBytes = kTileInputs / 2 * kWeightStride;  ///< Of a panel.

struct alignas(kTileBytes) TileLine {
  std::array<std::byte, kTileBytes> bytes;
};
using TileStep = std::array<TileLine, kStepBytes / kTileBytes>;

/// The weights of a panel's last inputs, where those are no whole step, filled up with zeros: what stands behind them is not theirs.
inline TileStep last_step(const PackedMatrix& weights, std::int64_t panel) {
  TileStep filled{};
  std::memcpy(filled.front().bytes.data(), weights.panel(panel) + weights.inputs() / kTileInputs * kStepBytes,
              static_cast<std::size_t>(divided_up(weights.inputs() % kTileInputs, 2) * kWeightStride));
  return filled;
}

/// This thread's tiles while it multiplies: `count` of them, from 0, have `rows` rows for sums and activations, the others 16 for weights.
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

}  // namespace decodelab::skinny
#endif
