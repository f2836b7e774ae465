// Products of many rows by coded weights on tiles (AMX): 16 rows by 16 outputs at a time, and the 32 inputs of a
// group in one instruction.
//
// A tile sums integers, and each group has scales of its own, so that sums leave their tile after every group. Vector
// units scale those of one group between the products of later ones: in two loops, one after the other, both took an
// eighth longer. Weights are unpacked once for all rows that fit into the second-level cache together with them.
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

/// Units whose products are on their way: each has a tile of sums. Tiles 0 to 3 hold sums, 4 and 5 activations, 6 and 7
/// weights.
constexpr std::int64_t kBegun = 4;

/// What is multiplied by one scale: a group of 32 inputs, or the half of one.
template <WeightCode code>
struct Unit {
  static constexpr std::int64_t kOfGroup = has_halves(code) ? 2 : 1;
  static constexpr std::int64_t kInputs = kCodedGroup / kOfGroup;
  static constexpr std::int64_t kRows = kInputs / 4;  ///< Of a tile of weights: four inputs of 16 outputs in each.

  static std::array<amx::TileShape, amx::kTiles> shapes() {
    constexpr amx::TileShape kActivations{.rows = kTileRows, .bytes = kInputs};
    constexpr amx::TileShape kWeights{.rows = kRows, .bytes = kTileBytes};
    return {amx::TileShape{}, {}, {}, {}, kActivations, kActivations, kWeights, kWeights};
  }
};

/// 16 rows of activations: [units][16][inputs of a unit] codes, and for each unit 16 scales and, if weights have a
/// least one, what that is multiplied by.
struct RowBlock {
  std::byte* codes;
  float* scales;
  float* of_least;
};

/// A panel: [units][inputs of a unit / 4][16][4] codes with a sign, and for each unit 16 scales and least weights.
struct OpenPanel {
  std::byte* codes;
  float* scales;
  float* least;
};

/// Weights to prefetch between products: the processor's own prefetchers stop at each page of 4 kB.
struct Ahead {
  const std::byte* next;
  std::int64_t lines;  ///< For kBegun units.

  [[gnu::always_inline]] inline void fetch() {
    for (std::int64_t line = 0; line < lines; ++line, next += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
    }
  }
};

template <WeightCode code>
[[gnu::target(DECODELAB_VNNI)]] void open_panel(const std::byte* panel, std::int64_t groups, const OpenPanel& to) {
  const __m512i zero = _mm512_set1_epi8(static_cast<char>(zero_of(code)));
  for (std::int64_t group = 0; group < groups; ++group) {
    const GroupAt at = group_at<code>(panel, group);
    __m512i codes[8];
    load_codes<code>(at.codes, codes);
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) {
      _mm512_store_si512(to.codes + (group * 8 + part) * kLine, _mm512_sub_epi8(codes[part], zero));
    }
    const Scales512 scales = scales_of<code>(at);
    for (std::int64_t half = 0; half < Unit<code>::kOfGroup; ++half) {
      _mm512_store_ps(to.scales + (group * Unit<code>::kOfGroup + half) * kOutputs, scales.of_half[half]);
    }
    if constexpr (has_least(code)) {
      _mm512_store_ps(to.least + group * kOutputs, scales.least);
    }
  }
}

/// Begins the product of a unit in a tile of sums, unless the unit does not exist. Which tiles it takes is a part of
/// the names of instructions.
#define DECODELAB_BEGIN_UNIT(sums, activations, weights, unit)                                            \
  if ((unit) < units) {                                                                                   \
    _tile_zero(sums);                                                                                     \
    _tile_loadd(activations, rows.codes + (unit) * kTileRows * Unit<code>::kInputs, Unit<code>::kInputs); \
    _tile_loadd(weights, panel.codes + (unit) * Unit<code>::kRows * kTileBytes, kTileBytes);              \
    _tile_dpbssd(sums, activations, weights);                                                             \
    _tile_stored(sums, products[(unit) % kHeld], kTileBytes);                                             \
  }

/// Scales the products of a unit, and adds them to the sums of each row.
template <WeightCode code>
DECODELAB_INLINE_VNNI void finish_unit(const RowBlock& rows, const OpenPanel& panel, std::int64_t unit,
                                       const std::int32_t* products, __m512 (&total)[kTileRows]) {
  const __m512 scales = _mm512_load_ps(panel.scales + unit * kOutputs);
  const float* const row_scales = rows.scales + unit * kTileRows;
#pragma GCC unroll 16
  for (int row = 0; row < kTileRows; ++row) {
    const __m512 product = as_floats(_mm512_load_si512(products + row * kOutputs));
    total[row] = _mm512_fmadd_ps(product, _mm512_mul_ps(scales, _mm512_set1_ps(row_scales[row])), total[row]);
  }
  if constexpr (has_least(code)) {
    const __m512 least = _mm512_load_ps(panel.least + unit * kOutputs);
    const float* const of_least = rows.of_least + unit * kTileRows;
#pragma GCC unroll 16
    for (int row = 0; row < kTileRows; ++row) {
      total[row] = _mm512_fmadd_ps(least, _mm512_set1_ps(of_least[row]), total[row]);
    }
  }
}

/// Writes the products of 16 rows by a panel, [16][stride].
template <WeightCode code>
[[gnu::target(DECODELAB_AMX_INT8)]] void multiply_block(const RowBlock& rows, const OpenPanel& panel,
                                                        std::int64_t units, float* sums, std::int64_t stride,
                                                        Ahead& ahead) {
  constexpr std::int64_t kHeld = 2 * kBegun;
  alignas(kLine) std::int32_t products[kHeld][kTileRows * kOutputs];
  __m512 total[kTileRows];
#pragma GCC unroll 16
  for (int row = 0; row < kTileRows; ++row) {
    total[row] = _mm512_setzero_ps();
  }
  const auto finish = [&](std::int64_t unit) __attribute__((always_inline, target(DECODELAB_AMX_INT8))) {
    if (unit < units) {
      finish_unit<code>(rows, panel, unit, products[unit % kHeld], total);
    }
  };
  DECODELAB_BEGIN_UNIT(0, 4, 6, 0);
  DECODELAB_BEGIN_UNIT(1, 5, 7, 1);
  DECODELAB_BEGIN_UNIT(2, 4, 6, 2);
  DECODELAB_BEGIN_UNIT(3, 5, 7, 3);
  for (std::int64_t unit = 0; unit < units; unit += kBegun) {
    ahead.fetch();
    DECODELAB_BEGIN_UNIT(0, 4, 6, unit + 4);
    finish(unit);
    DECODELAB_BEGIN_UNIT(1, 5, 7, unit + 5);
    finish(unit + 1);
    DECODELAB_BEGIN_UNIT(2, 4, 6, unit + 6);
    finish(unit + 2);
    DECODELAB_BEGIN_UNIT(3, 5, 7, unit + 7);
    finish(unit + 3);
  }
#undef DECODELAB_BEGIN_UNIT
#pragma GCC unroll 16
  for (int row = 0; row < kTileRows; ++row) {
    _mm512_storeu_ps(sums + row * stride, total[row]);
  }
}

/// Multiplies rows [first, last) of activations, at least 16, by panels. Blocks are of 16 rows, the last of which
/// begins with rows of the one before it.
template <WeightCode code>
class Chunk {
 public:
  Chunk(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
        std::int64_t last)
      : weights_(weights), output_(output), first_(first), last_(last), units_(x.groups() * Unit<code>::kOfGroup) {
    thread_local std::vector<amx::TileLine> rows_room;
    thread_local std::vector<amx::TileLine> weights_room;
    rows_ = amx::lines_of(rows_room, blocks() * block_bytes() / kLine);
    panels_ = amx::lines_of(weights_room, weights.panels_together() * open_bytes() / kLine);
    for (std::int64_t block = 0; block < blocks(); ++block) {
      pack(x, block);
    }
  }

  void multiply(std::int64_t first, std::int64_t last) {
    const std::int64_t together = weights_.panels_together();
    const std::int64_t begun = blocks() * together * divided_up(units_, kBegun);
    const amx::Tiles tiles(Unit<code>::shapes());
    for (std::int64_t panel = first; panel < last; panel += together) {
      for (std::int64_t part = 0; part < together; ++part) {
        open_panel<code>(weights_.panel(panel + part), weights_.groups(), open(part));
      }
      Ahead ahead{.next = weights_.panel(panel + together),
                  .lines = divided_up(together * weights_.panel_bytes() / kLine, begun)};
      for (std::int64_t block = 0; block < blocks(); ++block) {
        multiply(panel, block, ahead);
      }
    }
  }

 private:
  static constexpr std::int64_t kFloats = static_cast<std::int64_t>(sizeof(float)) * kTileRows;

  std::int64_t blocks() const { return divided_up(last_ - first_, kTileRows); }
  std::int64_t begin_of(std::int64_t block) const { return std::min(first_ + block * kTileRows, last_ - kTileRows); }
  std::int64_t block_bytes() const { return units_ * (kTileRows * Unit<code>::kInputs + 2 * kFloats); }
  std::int64_t open_bytes() const { return units_ * (kOutputs * Unit<code>::kInputs + 2 * kFloats); }
  RowBlock rows(std::int64_t block) const {
    std::byte* const begin = rows_ + block * block_bytes();
    auto* const scales = reinterpret_cast<float*>(begin + units_ * kTileRows * Unit<code>::kInputs);
    return {.codes = begin, .scales = scales, .of_least = scales + units_ * kTileRows};
  }
  OpenPanel open(std::int64_t part) const {
    std::byte* const begin = panels_ + part * open_bytes();
    auto* const scales = reinterpret_cast<float*>(begin + units_ * kOutputs * Unit<code>::kInputs);
    return {.codes = begin, .scales = scales, .least = scales + units_ * kOutputs};
  }

  void pack(const CodedRows& x, std::int64_t block) const {
    const RowBlock to = rows(block);
    for (std::int64_t row = 0; row < kTileRows; ++row) {
      const std::int64_t from = begin_of(block) + row;
      for (std::int64_t unit = 0; unit < units_; ++unit) {
        const std::int64_t group = unit / Unit<code>::kOfGroup;
        const std::int64_t place = unit * kTileRows + row;
        std::memcpy(to.codes + place * Unit<code>::kInputs, x.codes(from) + unit * Unit<code>::kInputs,
                    Unit<code>::kInputs);
        to.scales[place] = x.scales(from)[group];
        to.of_least[place] = x.scales(from)[group] * static_cast<float>(x.sums(from)[group]);
      }
    }
  }

  void multiply(std::int64_t panel, std::int64_t block, Ahead& ahead) const {
    const std::int64_t together = weights_.panels_together();
    const std::int64_t width = together * kOutputs;
    std::array<float, 2 * kOutputs * kTileRows> sums{};
    for (std::int64_t part = 0; part < together; ++part) {
      multiply_block<code>(rows(block), open(part), units_, sums.data() + part * kOutputs, width, ahead);
    }
    const std::int64_t row = first_ + block * kTileRows;
    finish_rows(output_, row, sums.data() + (row - begin_of(block)) * width, std::min(kTileRows, last_ - row),
                panel * kOutputs, width);
  }

  const CodedMatrix& weights_;
  const ProductOutput& output_;
  std::int64_t first_;
  std::int64_t last_;
  std::int64_t units_;
  std::byte* rows_;
  std::byte* panels_;
};

template <WeightCode code>
struct OnTiles {
  static void multiply(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
                       std::int64_t last) {
    const std::int64_t row_bytes = weights.groups() * (kCodedGroup + Unit<code>::kOfGroup * 2 * 4);
    for_each_chunk(x.rows(), row_bytes, kTileRows, [&](std::int64_t begin, std::int64_t end) {
      Chunk<code>(weights, x, output, begin, end).multiply(first, last);
    });
  }
};

template <>
struct OnTiles<WeightCode::q8_row> {
  static void multiply(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
                       std::int64_t last) {
    multiply_row_scaled_on_tiles(weights, x, output, first, last);
  }
};

}  // namespace

MultiplyMany amx_int8_kernel(WeightCode code) { return for_code<OnTiles>(code); }

}  // namespace decodelab::codes

#else

namespace decodelab::codes {
MultiplyMany amx_int8_kernel(WeightCode) { return nullptr; }
}  // namespace decodelab::codes

#endif
