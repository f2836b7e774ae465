// Products of many rows in bf16 on tiles (AMX): 32 rows by 32 outputs at a time, so that each tile that is loaded is multiplied twice.
//
// The order of the loops is GotoBLAS's (Goto and van de Geijn 2008, doi:10.1145/1356052.1356053): as many rows as the second-level cache
// holds beside the weights of a panel meet all panels, and what leaves that cache are weights once for each such chunk of rows.
#include "engine/kernels/amx_tiles.h"
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/skinny_epilogue.h"
#include "engine/kernels/skinny_kernels.h"

#if defined(__x86_64__)
#include <cstddef>
#include <cstring>
#include <vector>

namespace decodelab::skinny {

using namespace amx;

namespace {

constexpr std::int64_t kHalfBytes = kWeightStride / 2;
static_assert(kPanelOutputs == 2 * kBlockOutputs);
/// Of inputs that are summed before those behind them, for all panels: with more, a chunk has so few rows that it waits for weights.
constexpr std::int64_t kPartSteps = 48;
/// Of a chunk's activations: what leaves room for two panels in a second-level cache of 2 MiB.
constexpr std::int64_t kChunkBytes = 768 << 10;

/// The rows of a chunk in blocks of one size, so that tiles keep their shape; the last block may hold rows that no one asked for.
struct Blocks {
  explicit Blocks(std::int64_t rows)
      : count(divided_up(rows, 2 * kTileRows)), tile_rows(divided_up(divided_up(rows, count), 2)) {}

  std::int64_t count;
  std::int64_t tile_rows;

  std::int64_t block_rows() const { return 2 * tile_rows; }
  std::int64_t all_rows() const { return count * block_rows(); }
  std::int64_t step_bytes() const { return block_rows() * kTileBytes; }
};

/// Steps [begin, end) of the inputs.
struct Part {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t steps() const { return end - begin; }
};

/// What is left to do with the sums of some rows by half a panel. It is done a row at a time between the products of the next half, for
/// those leave idle what computes on vectors.
class Epilogue {
 public:
  Epilogue() = default;
  Epilogue(const SkinnyProduct& product, const float* sums, std::int64_t first_row, std::int64_t last_row,
           std::int64_t output)
      : product_(&product), sums_(sums), row_(first_row), end_(last_row), output_(output) {}

  [[gnu::always_inline]] inline void do_row() {
    if (row_ == end_) return;
    for (std::int64_t at = 0; at < kBlockOutputs; at += simd::kLanes)
      finish_sums<simd::Bfloat16>(*product_, sums_ + at, row_, output_ + at);
    sums_ += kBlockOutputs;
    ++row_;
  }
  [[gnu::target(DECODELAB_AVX512)]] void do_all() {
    while (row_ < end_) do_row();
  }

 private:
  const SkinnyProduct* product_ = nullptr;
  const float* sums_ = nullptr;
  std::int64_t row_ = 0;
  std::int64_t end_ = 0;
  std::int64_t output_ = 0;
};

/// What is done between the products of a step.
struct Beside {
  const std::byte* weights;  ///< That come next: the processor's own prefetchers stop at each page of 4 kB.
  std::int64_t lines;        ///< Of them to ask for, in a step.
  Epilogue epilogue;
  std::int64_t rows;  ///< Of it to do, in a step.
};

[[gnu::target("amx-tile,amx-bf16," DECODELAB_AVX512)]] void add_steps(const std::byte* x, std::int64_t tile_rows,
                                                                      const std::byte* weights, std::int64_t steps,
                                                                      Beside& beside) {
  for (std::int64_t step = 0; step < steps; ++step, x += 2 * tile_rows * kTileBytes, weights += kStepBytes) {
    for (std::int64_t line = 0; line < beside.lines; ++line, beside.weights += kTileBytes)
      _mm_prefetch(reinterpret_cast<const char*>(beside.weights), _MM_HINT_T1);
    add_step(x, tile_rows, weights, weights + kTileBytes, kWeightStride);
    for (std::int64_t row = 0; row < beside.rows; ++row) beside.epilogue.do_row();
  }
}

/// The sums of a block go on from those of the inputs before, where there were any.
[[gnu::target("amx-tile")]] void begin_sums(const float* sums, std::int64_t tile_rows, bool from_zero) {
  if (from_zero) return zero_block();
  load_block(sums, tile_rows, kBlockOutputs);
}
[[gnu::target("amx-tile,amx-bf16")]] void add_last_step(const std::byte* x, std::int64_t tile_rows,
                                                        const std::byte* weights) {
  add_step(x, tile_rows, weights, weights + kTileBytes, kWeightStride);
}
[[gnu::target("amx-tile")]] void store_sums(float* sums, std::int64_t tile_rows) {
  store_block(sums, tile_rows, kBlockOutputs);
}

/// Some panels by a chunk of rows.
class Chunk {
 public:
  Chunk(const SkinnyProduct& product, std::int64_t first_panel, std::int64_t last_panel, std::int64_t first_row,
        std::int64_t last_row)
      : product_(product),
        first_panel_(first_panel),
        last_panel_(last_panel),
        first_row_(first_row),
        last_row_(last_row),
        blocks_(last_row - first_row),
        inputs_(product.weights.inputs()) {}

  void multiply() {
    thread_local std::vector<TileLine> inputs_room;
    thread_local std::vector<TileLine> sums_room;
    const Tiles tiles(blocks_.tile_rows, kBlockTiles);
    const std::int64_t parts = divided_up(steps(), kPartSteps);
    const std::int64_t part_steps = divided_up(steps(), parts);
    // Sums of all panels wait for the next part; where there is one part, those of one half wait for their epilogue beside those of the next.
    kept_halves_ = parts > 1 ? 2 * (last_panel_ - first_panel_) : 2;
    x_ = lines_of(inputs_room, part_steps * blocks_.all_rows());
    sums_ = reinterpret_cast<float*>(lines_of(sums_room, kept_halves_ * half_sums() / kTileSums));
    for (std::int64_t begin = 0; begin < steps(); begin += part_steps)
      multiply_part({begin, std::min(begin + part_steps, steps())});
    beside_.epilogue.do_all();
  }

 private:
  std::int64_t steps() const { return divided_up(inputs_, kTileInputs); }
  std::int64_t whole_steps() const { return inputs_ / kTileInputs; }
  std::int64_t half_sums() const { return blocks_.all_rows() * kBlockOutputs; }
  std::byte* x_at(const Part& part, std::int64_t block, std::int64_t step) const {
    return x_ + (block * part.steps() + step - part.begin) * blocks_.step_bytes();
  }

  /// Brings the activations into the order in which tiles are loaded, [blocks][steps][rows of a block][32], zeros behind the last input.
  void pack(const Part& part) const {
    const std::int64_t whole_end = std::min(part.end, whole_steps());
    for (std::int64_t row = first_row_; row < last_row_; ++row) {
      const auto* const x = static_cast<const std::byte*>(product_.x) + row * product_.x_stride * kInputBytes;
      std::byte* to = x_at(part, (row - first_row_) / blocks_.block_rows(), part.begin) +
                      (row - first_row_) % blocks_.block_rows() * kTileBytes;
      for (std::int64_t step = part.begin; step < whole_end; ++step, to += blocks_.step_bytes())
        std::memcpy(to, x + step * kTileBytes, kTileBytes);
      if (whole_end == part.end) continue;
      std::memset(to, 0, kTileBytes);
      std::memcpy(to, x + whole_end * kTileBytes, static_cast<std::size_t>(inputs_ % kTileInputs * kInputBytes));
    }
  }

  void multiply_part(const Part& part) {
    pack(part);
    beside_.lines = divided_up(kStepBytes / kTileBytes / 2, blocks_.count);
    beside_.rows = divided_up(blocks_.block_rows(), part.steps());
    for (std::int64_t panel = first_panel_; panel < last_panel_; ++panel) {
      const bool goes_on = panel + 1 < last_panel_;
      beside_.weights = product_.weights.panel(goes_on ? panel + 1 : first_panel_) +
                        (goes_on ? part.begin : part.end % steps()) * kStepBytes;
      for (const std::int64_t half : {0, 1}) multiply_half(part, panel, half);
    }
  }

  void multiply_half(const Part& part, std::int64_t panel, std::int64_t half) {
    const std::int64_t whole_end = std::min(part.end, whole_steps());
    const std::byte* const weights = product_.weights.panel(panel) + half * kHalfBytes;
    float* const sums = sums_ + ((panel - first_panel_) * 2 + half) % kept_halves_ * half_sums();
    TileStep last{};
    if (whole_end < part.end) last = last_step(product_.weights, panel);
    for (std::int64_t block = 0; block < blocks_.count; ++block) {
      float* const block_sums = sums + block * blocks_.block_rows() * kBlockOutputs;
      begin_sums(block_sums, blocks_.tile_rows, part.begin == 0);
      add_steps(x_at(part, block, part.begin), blocks_.tile_rows, weights + part.begin * kStepBytes,
                whole_end - part.begin, beside_);
      if (whole_end < part.end)
        add_last_step(x_at(part, block, whole_end), blocks_.tile_rows, last.front().bytes.data() + half * kHalfBytes);
      store_sums(block_sums, blocks_.tile_rows);
    }
    if (part.end < steps()) return;
    beside_.epilogue.do_all();
    beside_.epilogue = Epilogue(product_, sums, first_row_, last_row_, panel * kPanelOutputs + half * kBlockOutputs);
  }

  const SkinnyProduct& product_;
  std::int64_t first_panel_;
  std::int64_t last_panel_;
  std::int64_t first_row_;
  std::int64_t last_row_;
  Blocks blocks_;
  std::int64_t inputs_;
  std::byte* x_ = nullptr;
  float* sums_ = nullptr;
  std::int64_t kept_halves_ = 0;
  Beside beside_{};
};

}  // namespace

void multiply_many_on_tiles(const SkinnyProduct& product, std::int64_t first, std::int64_t last) {
  const std::int64_t part_bytes = std::min(divided_up(product.weights.inputs(), kTileInputs), kPartSteps) * kTileBytes;
  const std::int64_t chunks = divided_up(product.rows, kChunkBytes / part_bytes);
  const std::int64_t chunk_rows = divided_up(product.rows, chunks);
  for (std::int64_t row = 0; row < product.rows; row += chunk_rows)
    Chunk(product, first, last, row, std::min(row + chunk_rows, product.rows)).multiply();
}

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
void multiply_many_on_tiles(const SkinnyProduct&, std::int64_t, std::int64_t) {}
}  // namespace decodelab::skinny

#endif
