// Skinny products in bf16 on tiles (AMX): an instruction multiplies 16 rows of 32 inputs by 16 outputs, so that products of one row and of
// sixteen wait for the same weights and for nothing else. Intel SDM 1, chapter 18.
#include "engine/kernels/skinny_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace decodelab::skinny {
namespace {

constexpr std::int64_t kTileRows = 16;    // at most, of any tile
constexpr std::int64_t kTileBytes = 64;   // of a row: 16 sums, 16 outputs' pairs of weights, or 32 inputs
constexpr std::int64_t kTileInputs = 32;  // that one instruction takes: a step
constexpr std::int64_t kInputBytes = 2;
constexpr std::int64_t kPairBytes = 2 * kInputBytes;
constexpr std::int64_t kWeightStride = kPanelOutputs * kPairBytes;
constexpr std::int64_t kSumsStride = kPanelOutputs * sizeof(float);
constexpr std::int64_t kStepBytes = kTileInputs / 2 * kWeightStride;
constexpr std::int64_t kPartBytes = kStepBytes / 4;
/// How far ahead of the weights that are read others are asked for: the processor's own prefetchers stop at each page of 4 kB.
constexpr std::int64_t kAheadBytes = 2048;
/// Whose weights all rows meet, where those are more than a tile holds, before the next ones do: a part of the first-level cache.
constexpr std::int64_t kBlockSteps = 4;

struct alignas(kTileBytes) Line {
  std::array<std::byte, kTileBytes> bytes;
};

/// What ldtilecfg reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::array<std::uint8_t, 15> unused{};
  std::array<std::uint16_t, 16> bytes{};
  std::array<std::uint8_t, 16> rows{};
};
static_assert(sizeof(TileShapes) == 64);

/// The tiles of this thread while it multiplies: 0 to 3 hold the sums of some rows by 64 outputs, 4 their inputs, and 5 to 7 weights.
class Tiles {
 public:
  explicit Tiles(std::int64_t rows) {
    TileShapes shapes;
    std::fill_n(shapes.bytes.begin(), 8, static_cast<std::uint16_t>(kTileBytes));
    std::fill_n(shapes.rows.begin(), 5, static_cast<std::uint8_t>(rows));
    std::fill_n(shapes.rows.begin() + 5, 3, static_cast<std::uint8_t>(kTileRows));
    // Not _tile_loadconfig: g++ 12 has it read eight bytes, and may leave the others unwritten.
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  [[gnu::target("amx-tile")]] ~Tiles() { _tile_release(); }
};

/// The rows of a product in passes of one size, so that tiles keep their shape; the last pass may hold rows that no one asked for.
struct Passes {
  explicit Passes(std::int64_t product_rows)
      : count(divided_up(product_rows, kTileRows)), rows(divided_up(product_rows, count)) {}

  std::int64_t count;
  std::int64_t rows;  ///< Of each.

  std::int64_t all_rows() const { return count * rows; }
};

/// The activations of a product in the order in which tiles are loaded, [K / 32][rows][32], and behind them what is left of K, in pairs,
/// [rows][pairs][2]: of rows that lie a power of two apart, the first-level cache holds a few alone.
class TileInputs {
 public:
  TileInputs(const SkinnyProduct& product, const Passes& passes, std::vector<Line>& room)
      : rows_(passes.all_rows()),
        steps_(product.weights.inputs() / kTileInputs),
        left_pairs_(divided_up(product.weights.inputs() % kTileInputs, 2)) {
    if (std::ssize(room) < rows_ * (steps_ + 1)) room.resize(static_cast<std::size_t>(rows_ * (steps_ + 1)));
    data_ = room.front().bytes.data();
    const auto left_bytes = static_cast<std::size_t>(product.weights.inputs() % kTileInputs * kInputBytes);
    for (std::int64_t row = 0; row < product.rows; ++row) {
      const std::byte* const x = static_cast<const std::byte*>(product.x) + row * product.x_stride * kInputBytes;
      for (std::int64_t step = 0; step < steps_; ++step) std::memcpy(at(step, row), x + step * kTileBytes, kTileBytes);
      if (left_bytes == 0) continue;
      // The last input of an odd number has no partner but zero.
      std::byte* const left = at(steps_, 0) + row * left_stride();
      std::memset(left, 0, static_cast<std::size_t>(left_stride()));
      std::memcpy(left, x + steps_ * kTileBytes, left_bytes);
    }
  }

  std::int64_t steps() const { return steps_; }
  std::int64_t step_stride() const { return rows_ * kTileBytes; }
  std::byte* at(std::int64_t step, std::int64_t row) const { return data_ + (step * rows_ + row) * kTileBytes; }
  std::int64_t left_pairs() const { return left_pairs_; }
  std::int64_t left_stride() const { return left_pairs_ * kPairBytes; }

 private:
  std::int64_t rows_;
  std::int64_t steps_;
  std::int64_t left_pairs_;
  std::byte* data_;
};

template <bool asks>
[[gnu::always_inline]] inline void ask(const std::byte* weights) {
  if constexpr (!asks) return;
#pragma GCC unroll 16
  for (std::int64_t at = 0; at < kPartBytes; at += kTileBytes)
    _mm_prefetch(reinterpret_cast<const char*>(weights + at), _MM_HINT_T0);
}

/// Adds the products of `steps` steps to the sums of up to 16 rows. The numbers of tiles are part of the instructions' names, so that no
/// loop can stand for them.
template <bool asks>
[[gnu::target("amx-tile,amx-bf16")]] void add_steps(const std::byte* weights, const std::byte* x, std::int64_t x_step,
                                                    std::int64_t steps, float* sums) {
  _tile_loadd(0, sums, kSumsStride);
  _tile_loadd(1, sums + 16, kSumsStride);
  _tile_loadd(2, sums + 32, kSumsStride);
  _tile_loadd(3, sums + 48, kSumsStride);
  for (std::int64_t step = 0; step < steps; ++step, weights += kStepBytes, x += x_step) {
    const std::byte* const ahead = weights + kAheadBytes;
    _tile_loadd(4, x, kTileBytes);
    ask<asks>(ahead);
    _tile_loadd(5, weights, kWeightStride);
    _tile_dpbf16ps(0, 4, 5);
    ask<asks>(ahead + kPartBytes);
    _tile_loadd(6, weights + kTileBytes, kWeightStride);
    _tile_dpbf16ps(1, 4, 6);
    ask<asks>(ahead + 2 * kPartBytes);
    _tile_loadd(7, weights + 2 * kTileBytes, kWeightStride);
    _tile_dpbf16ps(2, 4, 7);
    ask<asks>(ahead + 3 * kPartBytes);
    _tile_loadd(5, weights + 3 * kTileBytes, kWeightStride);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, sums, kSumsStride);
  _tile_stored(1, sums + 16, kSumsStride);
  _tile_stored(2, sums + 32, kSumsStride);
  _tile_stored(3, sums + 48, kSumsStride);
}

/// The first rows to meet weights ask for those behind them.
void add_panel(const std::byte* panel, const TileInputs& x, const Passes& passes, float* sums) {
  const std::int64_t block = passes.count == 1 ? x.steps() : kBlockSteps;
  for (std::int64_t begin = 0; begin < x.steps(); begin += block) {
    const std::int64_t steps = std::min(block, x.steps() - begin);
    for (std::int64_t pass = 0; pass < passes.count; ++pass) {
      const std::int64_t row = pass * passes.rows;
      (pass == 0 ? add_steps<true> : add_steps<false>)(panel + begin * kStepBytes, x.at(begin, row), x.step_stride(),
                                                       steps, sums + row * kPanelOutputs);
    }
  }
}

}  // namespace

void multiply_on_tiles(const SkinnyProduct& product, std::int64_t first, std::int64_t last) {
  thread_local std::vector<Line> room;
  const Passes passes(product.rows);
  const TileInputs x(product, passes, room);
  const Tiles tiles(passes.rows);
  std::vector<float> sums(static_cast<std::size_t>(passes.all_rows() * kPanelOutputs));
  for (std::int64_t index = first; index < last; ++index) {
    const std::byte* const panel = product.weights.panel(index);
    std::ranges::fill(sums, 0.0F);
    add_panel(panel, x, passes, sums.data());
    if (x.left_pairs() > 0)
      avx512_bf16_kernel()(panel + x.steps() * kStepBytes, x.at(x.steps(), 0), x.left_stride(), product.rows,
                           x.left_pairs(), sums.data());
    finish_panel(product, index, sums.data(), CpuIsa::amx_bf16);
  }
}

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
void multiply_on_tiles(const SkinnyProduct&, std::int64_t, std::int64_t) {}
}  // namespace decodelab::skinny

#endif
