// A weight matrix packed in the order in which a skinny product reads it, and that product: few rows of activations by
// all weights, read once. On tiles the product takes many rows too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/round_up.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/element_type.h"
#include "engine/kernels/products/panel_memory.h"
#include "engine/kernels/products/product_output.h"

namespace decodelab {

/// Outputs of a panel, whose weights are adjacent: four registers of 64 bytes hold their weights of one input in fp32.
inline constexpr std::int64_t kPanelOutputs = 64;

/// Version of the packing, raised with every change of what fill() writes: packed weights on disk are then packed anew.
inline constexpr int kPackingVersion = 1;

/// Says how packed weights lie in memory.
enum class WeightOrder : std::uint8_t {
  panels,  ///< [N / 64][K][64], in bf16 [N / 64][K / 2][64][2]: one input, or pair, for all outputs of a panel.
  tiles,   ///< bf16: [N / 32][K / 32][2][16][16][2], tiles of 16 pairs of inputs by 16 outputs.
};
/// Inputs of a tile.
inline constexpr std::int64_t kTileInputs = 32;
inline constexpr std::int64_t kTileOutputs = 16;
constexpr WeightOrder weight_order(CpuIsa isa) {
  return isa == CpuIsa::amx_bf16 ? WeightOrder::tiles : WeightOrder::panels;
}

/// Holds the weights of y = x W^T, W being [N, K] in fp32 or bf16, in panels of 64 outputs, so that one product reads
/// them from the first to the last byte. N is padded with zeros to whole panels, K to an even number, on tiles to a
/// multiple of 32.
///
/// A gated matrix is that of a gated MLP: W holds the I rows of a gate above the I rows of what it multiplies. Groups
/// of 16 of either alternate, each filled up with zeros, so that the epilogue of a panel has both sums of a result.
///
/// Immutable once filled.
class PackedMatrix {
 public:
  /// Allocates memory for [N, K], to be filled. Throws std::invalid_argument for other types than fp32 and bf16, and on
  /// tiles for other types than bf16.
  PackedMatrix(std::int64_t outputs, std::int64_t inputs, ElementType dtype, WeightOrder order, bool gated = false);
  /// Packs panels [first, last) of `weights`, which is [N, K] row by row; threads may take disjoint ranges.
  void fill(const void* weights, std::int64_t first, std::int64_t last);

  /// Returns N.
  std::int64_t outputs() const { return outputs_; }
  /// Returns the width of y: N, or of a gated matrix N / 2.
  std::int64_t results() const { return gated_ ? outputs_ / 2 : outputs_; }
  bool gated() const { return gated_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t panels() const {
    return divided_up(gated_ ? 2 * rounded_up(results(), kTileOutputs) : outputs_, kPanelOutputs);
  }
  ElementType dtype() const { return dtype_; }
  WeightOrder order() const { return order_; }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  const std::byte* panel(std::int64_t index) const { return data_->data() + index * panel_bytes(); }
  std::int64_t panel_bytes() const;
  /// Returns the memory of a panel, to be filled with what panel() returned in a matrix of the same layout().
  std::span<std::byte> room_of_panel(std::int64_t index);
  /// Returns a name of all that the packed bytes of given weights depend on: type, shape, order, and the version of the
  /// packing.
  std::string layout() const;

 private:
  std::int64_t outputs_;
  std::int64_t inputs_;
  ElementType dtype_;
  WeightOrder order_;
  bool gated_;
  std::optional<PanelMemory> data_;
};

/// Describes a product; several threads take disjoint ranges of its panels.
struct SkinnyProduct {
  const PackedMatrix& weights;
  const void* x;  ///< [rows, K] in the weights' type, rows `x_stride` elements apart.
  std::int64_t x_stride;
  std::int64_t rows;  ///< Beyond kFewRows a matrix library is faster, unless multiplies_many_rows().
  const void* bias;   ///< [N] in the weights' type, or null.
  void* y;            ///< [rows, results()] in the weights' type, rows `y_stride` elements apart.
  std::int64_t y_stride;
  /// Applied to the sums in fp32, before they are rounded; of a gated matrix, to those of the gate, which are then
  /// multiplied by the others.
  std::optional<Activation> activation = {};

  ProductOutput output() const {
    return {.outputs = weights.outputs(),
            .gated = weights.gated(),
            .dtype = weights.dtype(),
            .bias = bias,
            .y = y,
            .y_stride = y_stride,
            .activation = activation};
  }
};

/// Up to this many rows, a product waits for its weights.
inline constexpr std::int64_t kFewRows = 32;
/// Returns whether multiply_panels() is fast with any number of rows.
constexpr bool multiplies_many_rows(WeightOrder order) { return order == WeightOrder::tiles; }

/// Computes the outputs of panels [first, last): sums in fp32, the bias added in fp32, rounded once. The order of
/// summation depends on neither the number of threads nor that of rows, so that a row's result is the same in any
/// batch. The weights lie in weight_order(isa).
void multiply_panels(const SkinnyProduct& product, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
