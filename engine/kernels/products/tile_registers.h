// The tile registers of AMX: their shapes, and memory to load them from. Intel SDM 1, chapter 18.
#pragma once

#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <immintrin.h>

namespace decodelab::amx {

inline constexpr std::int64_t kTileRows = 16;   ///< Maximum number of rows of a tile.
inline constexpr std::int64_t kTileBytes = 64;  ///< Maximum bytes per row: 16 sums, or what 16 outputs need.

struct alignas(kTileBytes) TileLine {
  std::array<std::byte, kTileBytes> bytes;
};

/// Returns memory of at least that many lines, whose contents are undefined.
inline std::byte* lines_of(std::vector<TileLine>& scratch, std::int64_t lines) {
  if (std::ssize(scratch) < lines) {
    scratch.resize(static_cast<std::size_t>(lines));
  }
  return scratch.front().bytes.data();
}

struct TileShape {
  std::int64_t rows = kTileRows;
  std::int64_t bytes = kTileBytes;  ///< Of a row.
};
inline constexpr std::size_t kTiles = 8;

/// Configures this thread's tiles while it multiplies.
class Tiles {
 public:
  explicit Tiles(const std::array<TileShape, kTiles>& of_tiles) {
    Shapes shapes;
    for (std::size_t tile = 0; tile < kTiles; ++tile) {
      shapes.bytes[tile] = static_cast<std::uint16_t>(of_tiles[tile].bytes);
      shapes.rows[tile] = static_cast<std::uint8_t>(of_tiles[tile].rows);
    }
    // _tile_loadconfig is not used: g++ 12 lets it read eight bytes only, and may leave the others unwritten.
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
  }
  /// The first `count` have `rows` rows, for sums and activations, the others 16 for weights.
  Tiles(std::int64_t rows, std::int64_t count) : Tiles(first_of_rows(rows, count)) {}
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  [[gnu::target("amx-tile")]] ~Tiles() { _tile_release(); }

 private:
  /// The operand of ldtilecfg.
  struct alignas(64) Shapes {
    std::uint8_t palette = 1;
    std::array<std::uint8_t, 15> unused{};
    std::array<std::uint16_t, 16> bytes{};
    std::array<std::uint8_t, 16> rows{};
  };
  static_assert(sizeof(Shapes) == 64);

  static std::array<TileShape, kTiles> first_of_rows(std::int64_t rows, std::int64_t count) {
    std::array<TileShape, kTiles> shapes;
    std::fill_n(shapes.begin(), count, TileShape{.rows = rows});
    return shapes;
  }
};

}  // namespace decodelab::amx
#endif
