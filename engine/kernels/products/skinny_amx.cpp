// Skinny products in bf16 on tiles (AMX): an instruction multiplies 16 rows of 32 inputs by 16 outputs, so that
// products of one row and of sixteen wait for the same weights and for nothing else. Intel SDM 1, chapter 18.
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/products/amx_epilogue.h"
#include "engine/kernels/products/amx_tiles.h"
#include "engine/kernels/products/skinny_kernels.h"

#if defined(__x86_64__)
#include <vector>

namespace decodelab::skinny {

using namespace amx;

namespace {

/// How far ahead of the current weights others are prefetched: the processor's own prefetchers stop at each page of 4
/// kB. Of distances from 512 to 4096 bytes, with 2 to 32 rows, a tile was the best.
constexpr std::int64_t kAheadBytes = kTileWeights;

/// Cuts rows into tiles of a block: up to 16 rows are one tile, more are two tiles of one size; the last may hold a row
/// that does not exist.
struct Rows {
  explicit Rows(std::int64_t product_rows)
      : tiles(divided_up(product_rows, kTileRows)), tile_rows(divided_up(product_rows, tiles)) {}

  std::int64_t tiles;
  std::int64_t tile_rows;

  std::int64_t all() const { return tiles * tile_rows; }
};

/// Copies the activations into the order in which tiles are loaded, [K / 32][rows][32], with zeros past the last input:
/// of rows that lie a power of two apart, the first-level cache holds only a few.
std::byte* packed_inputs(const SkinnyProduct& product, const Rows& rows) {
  thread_local std::vector<TileLine> scratch;
  const std::int64_t steps = divided_up(product.weights.inputs(), kTileInputs);
  std::byte* const packed = lines_of(scratch, rows.all() * steps);
  for (std::int64_t row = 0; row < product.rows; ++row) {
    pack_row(product, row, 0, steps, rows.all() * kTileBytes, packed + row * kTileBytes);
  }
  return packed;
}

/// Prefetches the weights that follow a tile.
[[gnu::always_inline]] inline void ask_behind(const std::byte* tile) {
#pragma GCC unroll 16
  for (std::int64_t at = kAheadBytes; at < kAheadBytes + kTileWeights; at += kTileBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(tile + at), _MM_HINT_T0);
  }
}

struct AskBehind {
  const std::byte* weights;

  // Always inline, like ask_behind(): g++ assumes that a function which only prefetches has no effect, and drops calls
  // of it.
  [[gnu::always_inline]] void operator()(std::int64_t tile) const { ask_behind(weights + tile * kTileWeights); }
};

/// Finishes `rows` rows of the previous strip during each step.
struct Beside {
  Epilogue& epilogue;
  std::int64_t rows;

  [[gnu::always_inline]] void do_step() const {
    for (std::int64_t row = 0; row < rows; ++row) {
      epilogue.do_row();
    }
  }
};

/// Computes the sums of a strip for one tile of rows, [rows][32].
[[gnu::target("amx-tile,amx-bf16," DECODELAB_AVX512)]] void multiply_one_tile(const std::byte* x,
                                                                              std::int64_t tile_rows,
                                                                              const std::byte* weights,
                                                                              std::int64_t steps, float* sums,
                                                                              const Beside& beside) {
  _tile_zero(0);
  _tile_zero(1);
  for (std::int64_t step = 0; step < steps; ++step, weights += kStepBytes, x += tile_rows * kTileBytes) {
    _tile_loadd(4, x, kTileBytes);
    ask_behind(weights);
    _tile_loadd(6, weights, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    ask_behind(weights + kTileWeights);
    _tile_loadd(7, weights + kTileWeights, kTileBytes);
    _tile_dpbf16ps(1, 4, 7);
    beside.do_step();
  }
  _tile_stored(0, sums, kBlockOutputs * sizeof(float));
  _tile_stored(1, sums + kTileOutputs, kBlockOutputs * sizeof(float));
}

/// Does the same for two tiles of rows.
[[gnu::target("amx-tile,amx-bf16," DECODELAB_AVX512)]] void multiply_two_tiles(const std::byte* x,
                                                                               std::int64_t tile_rows,
                                                                               const std::byte* weights,
                                                                               std::int64_t steps, float* sums,
                                                                               const Beside& beside) {
  zero_block();
  for (std::int64_t step = 0; step < steps; ++step, weights += kStepBytes, x += 2 * tile_rows * kTileBytes) {
    add_step(x, tile_rows, weights, AskBehind{weights});
    beside.do_step();
  }
  store_block(sums, tile_rows, kBlockOutputs);
}

}  // namespace

void multiply_on_tiles(const SkinnyProduct& product, std::int64_t first, std::int64_t last) {
  const Rows rows(product.rows);
  const std::byte* const x = packed_inputs(product, rows);
  const std::int64_t steps = divided_up(product.weights.inputs(), kTileInputs);
  const Tiles tiles(rows.tile_rows, kBlockTiles);
  constexpr std::int64_t kStripSums = 2 * kTileRows * kBlockOutputs;
  alignas(kTileBytes) std::array<float, 2 * kStripSums> sums;
  Epilogue epilogue;
  const Beside beside{epilogue, divided_up(product.rows, steps)};
  const auto multiply = rows.tiles == 1 ? multiply_one_tile : multiply_two_tiles;
  for (std::int64_t strip = 2 * first; strip < 2 * last; ++strip) {
    float* const strip_sums = sums.data() + strip % 2 * kStripSums;
    multiply(x, rows.tile_rows, strip_of(product.weights, strip), steps, strip_sums, beside);
    epilogue.do_all();
    epilogue = Epilogue(product, strip_sums, 0, product.rows, strip * kBlockOutputs);
  }
  epilogue.do_all();
}

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
void multiply_on_tiles(const SkinnyProduct&, std::int64_t, std::int64_t) {}
}  // namespace decodelab::skinny

#endif
