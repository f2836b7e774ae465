// Products of many rows in bf16 on tiles (AMX): 32 rows by 32 outputs at a time, so that each loaded tile is multiplied
// twice.
//
// The order of the loops is GotoBLAS's (Goto and van de Geijn 2008, doi:10.1145/1356052.1356053): a chunk of rows, as
// many as fit into the second-level cache together with the weights of some outputs, is multiplied by all weights,
// which are loaded into that cache once for each chunk.
#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/products/amx_epilogue.h"
#include "engine/kernels/products/amx_tiles.h"
#include "engine/kernels/products/skinny_kernels.h"

#if defined(__x86_64__)
#include <cstddef>
#include <vector>

namespace decodelab::skinny {

using namespace amx;

namespace {

static_assert(kPanelOutputs == 2 * kBlockOutputs);
/// Steps of a part: inputs that are summed for all outputs before the next inputs are. With more, a chunk would have so
/// few rows that it waits for weights.
constexpr std::int64_t kPartSteps = 48;
/// Bytes of a chunk's activations, which leave space for weights in a second-level cache of 2 MiB.
constexpr std::int64_t kChunkBytes = 768 << 10;

/// Cuts the rows of a chunk into blocks of one size, so that tiles keep their shape; the last block may hold rows that
/// do not exist.
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

/// Work that is done between the products of a step: prefetches and the epilogue of earlier sums.
struct Beside {
  const std::byte* weights;  ///< The next ones, to prefetch: the processor's own prefetchers stop at each page of 4 kB.
  std::int64_t lines;        ///< Lines to prefetch before each tile of weights.
  Epilogue epilogue;
  std::int64_t rows;  ///< Rows of the epilogue to finish in each step.
};

[[gnu::target("amx-tile,amx-bf16," DECODELAB_AVX512)]] void add_steps(const std::byte* x, std::int64_t tile_rows,
                                                                      const std::byte* weights, std::int64_t steps,
                                                                      Beside& beside) {
  for (std::int64_t step = 0; step < steps; ++step, x += 2 * tile_rows * kTileBytes, weights += kStepBytes) {
    add_step(x, tile_rows, weights, [&beside](std::int64_t) {
      for (std::int64_t line = 0; line < beside.lines; ++line, beside.weights += kTileBytes) {
        _mm_prefetch(reinterpret_cast<const char*>(beside.weights), _MM_HINT_T1);
      }
    });
    for (std::int64_t row = 0; row < beside.rows; ++row) {
      beside.epilogue.do_row();
    }
  }
}

/// Loads the sums of a block from the part before, or sets them to zero in the first part.
[[gnu::target("amx-tile")]] void begin_sums(const float* sums, std::int64_t tile_rows, bool from_zero) {
  if (from_zero) {
    return zero_block();
  }
  load_block(sums, tile_rows, kBlockOutputs);
}
[[gnu::target("amx-tile")]] void store_sums(float* sums, std::int64_t tile_rows) {
  store_block(sums, tile_rows, kBlockOutputs);
}

/// Multiplies some strips, of 32 outputs each, by a chunk of rows.
class Chunk {
 public:
  Chunk(const SkinnyProduct& product, std::int64_t first_strip, std::int64_t last_strip, std::int64_t first_row,
        std::int64_t last_row)
      : product_(product),
        first_strip_(first_strip),
        last_strip_(last_strip),
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
    // With several parts, the sums of all strips are kept for the next part. With one part, two strips suffice: the
    // epilogue of one runs during the products of the next.
    kept_strips_ = parts > 1 ? last_strip_ - first_strip_ : 2;
    x_ = lines_of(inputs_room, part_steps * blocks_.all_rows());
    sums_ = reinterpret_cast<float*>(lines_of(sums_room, kept_strips_ * strip_sums() / kTileOutputs));
    for (std::int64_t begin = 0; begin < steps(); begin += part_steps) {
      multiply_part({begin, std::min(begin + part_steps, steps())});
    }
    beside_.epilogue.do_all();
  }

 private:
  std::int64_t steps() const { return divided_up(inputs_, kTileInputs); }
  std::int64_t strip_sums() const { return blocks_.all_rows() * kBlockOutputs; }
  std::byte* x_at(const Part& part, std::int64_t block) const {
    return x_ + block * part.steps() * blocks_.step_bytes();
  }

  /// Copies the activations into the order in which tiles are loaded, [blocks][steps][rows of a block][32], with zeros
  /// past the last input.
  void pack(const Part& part) const {
    for (std::int64_t row = 0; row < last_row_ - first_row_; ++row) {
      pack_row(product_, first_row_ + row, part.begin, part.end, blocks_.step_bytes(),
               x_at(part, row / blocks_.block_rows()) + row % blocks_.block_rows() * kTileBytes);
    }
  }

  void multiply_part(const Part& part) {
    pack(part);
    beside_.lines = divided_up(kTileWeights / kTileBytes, blocks_.count);
    beside_.rows = divided_up(blocks_.block_rows(), part.steps());
    for (std::int64_t strip = first_strip_; strip < last_strip_; ++strip) {
      multiply_strip(part, strip);
    }
  }

  void multiply_strip(const Part& part, std::int64_t strip) {
    const std::byte* const weights = strip_of(product_.weights, strip) + part.begin * kStepBytes;
    float* const sums = sums_ + (strip - first_strip_) % kept_strips_ * strip_sums();
    beside_.weights = strip + 1 < last_strip_
                          ? strip_of(product_.weights, strip + 1) + part.begin * kStepBytes
                          : strip_of(product_.weights, first_strip_) + part.end % steps() * kStepBytes;
    for (std::int64_t block = 0; block < blocks_.count; ++block) {
      float* const block_sums = sums + block * blocks_.block_rows() * kBlockOutputs;
      begin_sums(block_sums, blocks_.tile_rows, part.begin == 0);
      add_steps(x_at(part, block), blocks_.tile_rows, weights, part.steps(), beside_);
      store_sums(block_sums, blocks_.tile_rows);
    }
    if (part.end < steps()) {
      return;
    }
    beside_.epilogue.do_all();
    beside_.epilogue = Epilogue(product_, sums, first_row_, last_row_, strip * kBlockOutputs);
  }

  const SkinnyProduct& product_;
  std::int64_t first_strip_;
  std::int64_t last_strip_;
  std::int64_t first_row_;
  std::int64_t last_row_;
  Blocks blocks_;
  std::int64_t inputs_;
  std::byte* x_ = nullptr;
  float* sums_ = nullptr;
  std::int64_t kept_strips_ = 0;
  Beside beside_{};
};

}  // namespace

void multiply_many_on_tiles(const SkinnyProduct& product, std::int64_t first, std::int64_t last) {
  const std::int64_t part_bytes = std::min(divided_up(product.weights.inputs(), kTileInputs), kPartSteps) * kTileBytes;
  const std::int64_t chunks = divided_up(product.rows, kChunkBytes / part_bytes);
  const std::int64_t chunk_rows = divided_up(product.rows, chunks);
  for (std::int64_t row = 0; row < product.rows; row += chunk_rows) {
    Chunk(product, 2 * first, 2 * last, row, std::min(row + chunk_rows, product.rows)).multiply();
  }
}

}  // namespace decodelab::skinny

#else

namespace decodelab::skinny {
void multiply_many_on_tiles(const SkinnyProduct&, std::int64_t, std::int64_t) {}
}  // namespace decodelab::skinny

#endif
