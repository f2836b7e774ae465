// A weight matrix of 8 or 4 bits a weight, and its product with activations that are rounded to 8 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/round_up.h"
#include "engine/kernels/integer_isa.h"
#include "engine/kernels/products/coded/coded_rows.h"
#include "engine/kernels/products/coded/weight_code.h"
#include "engine/kernels/products/product_output.h"

namespace decodelab {

/// Outputs of a panel, whose codes alternate: a register of 64 bytes holds four inputs of each of them.
inline constexpr std::int64_t kCodedOutputs = 16;

/// Holds the weights of y = x W^T, W being [N, K], in panels of 16 outputs: [N / 16][K / 32] tiles of 16 scales, with
/// q4_least 16 least weights, and the codes. Four inputs of 16 outputs stand in 64 bytes. Of 4 bits, the lower halves
/// are those of inputs 8 j to 8 j + 3, and the upper ones those of the four after them. N is filled up with weights of
/// zero to whole panels, K to whole groups.
///
/// Of a gated matrix, whose W holds a gate above what it multiplies, panels of either half alternate.
///
/// A row of codes is not read as ggml reads it, one output at a time: 16 outputs take one register each of sums, so
/// that nothing is added across a register.
class CodedMatrix {
 public:
  /// Returns the codes of inputs [32 * group, ..) of a row of W.
  using GroupOf = std::function<CodedGroup(std::int64_t row, std::int64_t group)>;

  /// Allocates memory for [N, K], to be filled. Throws std::invalid_argument for a gated matrix of an odd N.
  CodedMatrix(std::int64_t outputs, std::int64_t inputs, WeightCode code, bool gated = false);
  /// Packs panels [first, last); threads may take disjoint ranges.
  void fill(const GroupOf& group_of, std::int64_t first, std::int64_t last);

  std::int64_t outputs() const { return outputs_; }
  std::int64_t inputs() const { return inputs_; }
  /// Returns the width of y: N, or of a gated matrix N / 2.
  std::int64_t results() const { return gated_ ? outputs_ / 2 : outputs_; }
  bool gated() const { return gated_; }
  WeightCode code() const { return code_; }
  std::int64_t groups() const { return divided_up(inputs_, kCodedGroup); }
  /// Returns the panels that one output needs, which threads take together.
  std::int64_t panels_together() const { return gated_ ? 2 : 1; }
  std::int64_t panels() const { return panels_together() * divided_up(results(), kCodedOutputs); }
  std::int64_t panel_bytes() const { return groups() * tile_bytes(code_); }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  const std::byte* panel(std::int64_t index) const { return data_.data() + index * panel_bytes(); }

  static constexpr std::int64_t header_bytes(WeightCode code) { return code == WeightCode::q4_least ? 64 : 32; }
  static constexpr std::int64_t tile_bytes(WeightCode code) {
    return header_bytes(code) + kCodedOutputs * kCodedGroup / (code == WeightCode::q8 ? 1 : 2);
  }

 private:
  std::int64_t outputs_;
  std::int64_t inputs_;
  WeightCode code_;
  bool gated_;
  std::vector<std::byte> data_;
};

/// Computes y for panels [first, last), both multiples of panels_together(): products of codes are summed as integers
/// within a group, groups one after the other in fp32. Every instruction set gives the same bits, and a row's result is
/// the same in any batch. `output` has the shape of the matrix.
void multiply_coded(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
                    std::int64_t last, IntegerIsa isa);

}  // namespace decodelab
