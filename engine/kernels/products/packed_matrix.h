// A weight matrix in the order in which a skinny product reads it, and that product: few rows of activations, all of
// the weights once. On tiles, many rows too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/round_up.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/element_type.h"

namespace decodelab {

/// Outputs whose weights stand side by side: what four registers of 64 bytes hold of one input in fp32.
inline constexpr std::int64_t kPanelOutputs = 64;

/// Raised with every change of what fill() writes: packed weights that were kept on disk are then packed anew.
inline constexpr int kPackingVersion = 1;

/// How packed weights lie.
enum class WeightOrder : std::uint8_t {
  panels,  ///< [N / 64][K][64], in bf16 [N / 64][K / 2][64][2]: all outputs of a panel meet an input, or a pair.
  tiles,   ///< bf16: [N / 32][K / 32][2][16][16][2], tiles of 16 pairs of inputs by 16 outputs.
};
/// Of a tile.
inline constexpr std::int64_t kTileInputs = 32;
inline constexpr std::int64_t kTileOutputs = 16;
constexpr WeightOrder weight_order(CpuIsa isa) {
  return isa == CpuIsa::amx_bf16 ? WeightOrder::tiles : WeightOrder::panels;
}

/// The weights of y = x W^T, W being [N, K] in fp32 or bf16, in panels of 64 outputs, so that one product reads them
/// from the first to the last byte. N is filled up with zeros to whole panels, K to an even number, on tiles to a
/// multiple of 32.
///
/// The memory asks for huge pages: a decode step reads every weight once, and with small pages the address translation
/// is a cost of its own. Immutable once filled.
class PackedMatrix {
 public:
  /// Room for [N, K], to be filled. Throws std::invalid_argument for another type than fp32 and bf16, on tiles than
  /// bf16.
  PackedMatrix(std::int64_t outputs, std::int64_t inputs, ElementType dtype, WeightOrder order);
  /// Packs panels [first, last) of `weights`, which is [N, K] row by row; threads may take disjoint ranges.
  void fill(const void* weights, std::int64_t first, std::int64_t last);

  std::int64_t outputs() const { return outputs_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t panels() const { return divided_up(outputs_, kPanelOutputs); }
  ElementType dtype() const { return dtype_; }
  WeightOrder order() const { return order_; }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  const std::byte* panel(std::int64_t index) const { return data_.get() + index * panel_bytes(); }
  std::int64_t panel_bytes() const;
  /// A panel's place, to be filled with what panel() was in a matrix of the same layout().
  std::span<std::byte> room_of_panel(std::int64_t index);
  /// Names all that the packed bytes of given weights depend on: type, shape, order, and the version of the packing.
  std::string layout() const;

 private:
  std::int64_t outputs_;
  std::int64_t inputs_;
  ElementType dtype_;
  WeightOrder order_;
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte[], Unmap> data_;
};

/// A product over some panels; several threads take disjoint ranges of panels of one product.
struct SkinnyProduct {
  const PackedMatrix& weights;
  const void* x;  ///< [rows, K] in the weights' type; rows follow each other at `x_stride` elements.
  std::int64_t x_stride;
  std::int64_t rows;  ///< Beyond kFewRows a matrix library is faster, but for what multiplies_many_rows() names.
  const void* bias;   ///< [N] in the weights' type, or null.
  void* y;            ///< [rows, N] in the weights' type, at `y_stride` elements.
  std::int64_t y_stride;
  std::optional<Activation> activation = {};  ///< Applied to the sums in fp32, before they are rounded.
};

/// Up to so many rows, a product waits for its weights.
inline constexpr std::int64_t kFewRows = 32;
/// Whether multiply_panels() is fast with any number of rows.
constexpr bool multiplies_many_rows(WeightOrder order) { return order == WeightOrder::tiles; }

/// Computes the outputs of panels [first, last): sums in fp32, the bias added in fp32, rounded once. The order of
/// summation depends on neither the number of threads nor that of rows, so that a row's result is the same in any
/// batch. The weights lie in weight_order(isa).
void multiply_panels(const SkinnyProduct& product, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
