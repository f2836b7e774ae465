// Products of many rows by weights of 8 bits with one scale an output, on tiles (AMX): 32 rows by 32 outputs at a time,
// so that each tile that is loaded is multiplied twice.
//
// All inputs of a row are summed as integers in the tiles, which is why they take half the instructions of bf16's.
// Codes are multiplied as they lie in a panel, without a sign, and their zero is taken from the sums.
#include "engine/kernels/products/coded/coded_kernels.h"
#include "engine/kernels/products/coded/coded_tiles.h"
#include "engine/kernels/products/tile_registers.h"

#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace decodelab::codes {
namespace {

using amx::kTileBytes;
using amx::kTileRows;

/// Rows and outputs of a block.
constexpr std::int64_t kSide = 2 * kTileRows;
/// A step is 64 inputs: a tile of activations, and two groups of a panel's codes.
constexpr std::int64_t kStepInputs = kTileBytes;
constexpr std::int64_t kTile = kTileRows * kTileBytes;

using Products = std::array<std::int32_t, kSide * kSide>;

/// Writes the products of 32 rows, [steps][32][64], by the codes of two panels, [32][32].
[[gnu::target(DECODELAB_AMX_INT8)]] void multiply_codes(const std::byte* x, const std::byte* left,
                                                        const std::byte* right, std::int64_t steps,
                                                        Products& products) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t step = 0; step < steps; ++step, x += 2 * kTile, left += kTile, right += kTile) {
    _tile_loadd(4, x, kTileBytes);
    _tile_loadd(6, left, kTileBytes);
    _tile_dpbsud(0, 4, 6);
    _tile_loadd(5, x + kTile, kTileBytes);
    _tile_dpbsud(2, 5, 6);
    _tile_loadd(7, right, kTileBytes);
    _tile_dpbsud(1, 4, 7);
    _tile_dpbsud(3, 5, 7);
  }
  constexpr std::int64_t kRowBytes = kSide * 4;
  _tile_stored(0, products.data(), kRowBytes);
  _tile_stored(1, products.data() + kTileRows, kRowBytes);
  _tile_stored(2, products.data() + kTileRows * kSide, kRowBytes);
  _tile_stored(3, products.data() + kTileRows * kSide + kTileRows, kRowBytes);
}

/// Scales the products of 32 rows by 16 outputs; `sums` are [32][stride].
[[gnu::target(DECODELAB_VNNI)]] void scale_products(const std::int32_t* products, const std::byte* panel,
                                                    const CodedRows& x, std::int64_t first_row, float* sums,
                                                    std::int64_t stride) {
  const __m512 scales = sixteen_halves(panel);
  for (std::int64_t row = 0; row < kSide; ++row) {
    const __m512i zero = _mm512_set1_epi32(zero_of(WeightCode::q8_row) * x.sums(first_row + row)[0]);
    const __m512i product = _mm512_sub_epi32(_mm512_loadu_si512(products + row * kSide), zero);
    _mm512_storeu_ps(
        sums + row * stride,
        _mm512_mul_ps(as_floats(product), _mm512_mul_ps(scales, _mm512_set1_ps(x.scales(first_row + row)[0]))));
  }
}

/// Rows [first, last) of activations, at least 32, in blocks: the last of which begins with rows of the one before it.
class Chunk {
 public:
  Chunk(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
        std::int64_t last)
      : weights_(weights),
        x_(x),
        output_(output),
        first_(first),
        last_(last),
        steps_(divided_up(x.groups() * kCodedGroup, kStepInputs)) {
    thread_local std::vector<amx::TileLine> room;
    packed_ = amx::lines_of(room, blocks() * block_bytes() / kTileBytes);
    for (std::int64_t block = 0; block < blocks(); ++block) {
      pack(block);
    }
  }

  void multiply(std::int64_t first, std::int64_t last) const {
    const amx::Tiles tiles({});
    for (std::int64_t panel = first; panel < last; panel += 2) {
      for (std::int64_t block = 0; block < blocks(); ++block) {
        multiply_block(panel, std::min(panel + 1, last - 1), block);
      }
    }
  }

 private:
  std::int64_t blocks() const { return divided_up(last_ - first_, kSide); }
  std::int64_t begin_of(std::int64_t block) const { return std::min(first_ + block * kSide, last_ - kSide); }
  std::int64_t block_bytes() const { return steps_ * 2 * kTile; }

  /// Copies codes to where tiles are loaded from, [steps][32][64], with zeros past the last group.
  void pack(std::int64_t block) const {
    const std::int64_t bytes = x_.groups() * kCodedGroup;
    for (std::int64_t row = 0; row < kSide; ++row) {
      std::byte* to = packed_ + block * block_bytes() + row * kTileBytes;
      const std::int8_t* const from = x_.codes(begin_of(block) + row);
      for (std::int64_t place = 0; place < bytes; place += kStepInputs, to += 2 * kTile) {
        const auto count = static_cast<std::size_t>(std::min(kStepInputs, bytes - place));
        std::memset(to + count, 0, static_cast<std::size_t>(kStepInputs) - count);
        std::memcpy(to, from + place, count);
      }
    }
  }

  /// Both panels are the same where only one is left.
  void multiply_block(std::int64_t left, std::int64_t right, std::int64_t block) const {
    constexpr std::int64_t kHeader = header_bytes(WeightCode::q8_row);
    alignas(kTileBytes) Products products;
    multiply_codes(packed_ + block * block_bytes(), weights_.panel(left) + kHeader, weights_.panel(right) + kHeader,
                   steps_, products);
    const std::int64_t width = (right - left + 1) * kOutputs;
    alignas(kTileBytes) std::array<float, kSide * kSide> sums;
    for (std::int64_t panel = left; panel <= right; ++panel) {
      const std::int64_t place = (panel - left) * kOutputs;
      scale_products(products.data() + place, weights_.panel(panel), x_, begin_of(block), sums.data() + place, width);
    }
    const std::int64_t row = first_ + block * kSide;
    finish_rows(output_, row, sums.data() + (row - begin_of(block)) * width, std::min(kSide, last_ - row),
                left * kOutputs, width);
  }

  const CodedMatrix& weights_;
  const CodedRows& x_;
  const ProductOutput& output_;
  std::int64_t first_;
  std::int64_t last_;
  std::int64_t steps_;
  std::byte* packed_;
};

}  // namespace

void multiply_row_scaled_on_tiles(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output,
                                  std::int64_t first, std::int64_t last) {
  for_each_chunk(x.rows(), weights.groups() * kCodedGroup, kSide, [&](std::int64_t begin, std::int64_t end) {
    Chunk(weights, x, output, begin, end).multiply(first, last);
  });
}

}  // namespace decodelab::codes

#else

namespace decodelab::codes {
void multiply_row_scaled_on_tiles(const CodedMatrix&, const CodedRows&, const ProductOutput&, std::int64_t,
                                  std::int64_t) {}
}  // namespace decodelab::codes

#endif
