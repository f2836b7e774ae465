// Skinny products in bf16 on tiles (AMX): an instruction multiplies 16 rows of 32 inputs by 16 outputs, so that products of one row and of
// sixteen wait for the same weights and for nothing else. Intel SDM 1, chapter 18.
#include "engine/kernels/amx_tiles.h"
#include "engine/kernels/skinny_kernels.h"

#if defined(__x86_64__)
#include <cstring>
#include <vector>

namespace decodelab::skinny {

using namespace amx;

namespace {

constexpr std::int64_t kSumsStride = kPanelOutputs * sizeof(float);
constexpr std::int64_t kPartBytes = kStepBytes / 4;
/// How far ahead of the weights that are read others are asked for: the processor's own prefetchers stop at each page of 4 kB.
constexpr std::int64_t kAheadBytes = 2048;
/// Whose weights all rows meet, where those are more than a tile holds, before the next ones do: a part of the first-level cache.
constexpr std::int64_t kBlockSteps = 4;

/// The rows of a product in passes of one size, so that tiles keep their shape; the last pass may hold rows that no one asked for.
struct Passes {
  explicit Passes(std::int64_t product_rows)
      : count(divided_up(product_rows, kTileRows)), rows(divided_up(product_rows, count)) {}

  std::int64_t count;
  std::int64_t rows;  ///< Of each.

  std::int64_t all_rows() const { return count * rows; }
};

/// The activations of a product in the order in which tiles are loaded, [K / 32][rows][32], zeros behind the last of them: of rows that
/// lie a power of two apart, the first-level cache holds a few alone.
class TileInputs {
 public:
  TileInputs(const SkinnyProduct& product, const Passes& passes, std::vector<TileLine>& room)
      : rows_(passes.all_rows()),
        whole_steps_(product.weights.inputs() / kTileInputs),
        data_(lines_of(room, rows_ * (whole_steps_ + 1))) {
    const std::int64_t left = product.weights.inputs() % kTileInputs;
    if (std::ssize(room) < rows_ * (whole_steps_ + 1))
      room.resize(static_cast<std::size_t>(rows_ * (whole_steps_ + 1)));
    data_ = room.front().bytes.data();
    for (std::int64_t row = 0; row < product.rows; ++row) {
      const auto* const x = static_cast<const std::byte*>(product.x) + row * product.x_stride * kInputBytes;
      for (std::int64_t step = 0; step < whole_steps_; ++step)
        std::memcpy(at(step, row), x + step * kTileBytes, kTileBytes);
      std::memset(at(whole_steps_, row), 0, kTileBytes);
      std::memcpy(at(whole_steps_, row), x + whole_steps_ * kTileBytes, static_cast<std::size_t>(left * kInputBytes));
    }
  }

  std::int64_t whole_steps() const { return whole_steps_; }
  std::int64_t step_stride() const { return rows_ * kTileBytes; }
  std::byte* at(std::int64_t step, std::int64_t row) const { return data_ + (step * rows_ + row) * kTileBytes; }

 private:
  std::int64_t rows_;
  std::int64_t whole_steps_;
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
  const std::int64_t block = passes.count == 1 ? x.whole_steps() : kBlockSteps;
  for (std::int64_t begin = 0; begin < x.whole_steps(); begin += block) {
    const std::int64_t steps = std::min(block, x.whole_steps() - begin);
    for (std::int64_t pass = 0; pass < passes.count; ++pass) {
      const std::int64_t row = pass * passes.rows;
      (pass == 0 ? add_steps<true> : add_steps<false>)(panel + begin * kStepBytes, x.at(begin, row), x.step_stride(),
                                                       steps, sums + row * kPanelOutputs);
    }
  }
}

void add_last_step(const TileStep& weights, const TileInputs& x, const Passes& passes, float* sums) {
  for (std::int64_t pass = 0; pass < passes.count; ++pass) {
    const std::int64_t row = pass * passes.rows;
    add_steps<false>(weights.front().bytes.data(), x.at(x.whole_steps(), row), x.step_stride(), 1,
                     sums + row * kPanelOutputs);
  }
}

}  // namespace

void multiply_on_tiles(const SkinnyProduct& product, std::int64_t first, std::int64_t last) {
  thread_local std::vector<TileLine> room;
  const Passes passes(product.rows);
  const TileInputs x(product, passes, room);
  const Tiles tiles(passes.rows, 5);
  std::vector<float> sums(static_cast<std::size_t>(passes.all_rows() * kPanelOutputs));
  for (std::int64_t index = first; index < last; ++index) {
    std::ranges::fill(sums, 0.0F);
    add_panel(product.weights.panel(index), x, passes, sums.data());
    if (product.weights.inputs() % kTileInputs != 0)
      add_last_step(last_step(product.weights, index), x, passes, sums.data());
    finish_panel(product, index, sums.data(), CpuIsa::amx_bf16);
  }
}

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
void multiply_on_tiles(const SkinnyProduct&, std::int64_t, std::int64_t) {}
}  // namespace decodelab::skinny

#endif
