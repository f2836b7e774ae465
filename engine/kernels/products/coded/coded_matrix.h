// A weight matrix of 8 or 4 bits a weight, and its product with activations that are rounded to 8 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/round_up.h"
#include "engine/kernels/integer_isa.h"
#include "engine/kernels/products/coded/coded_layout.h"
#include "engine/kernels/products/coded/coded_rows.h"
#include "engine/kernels/products/coded/weight_code.h"
#include "engine/kernels/products/panel_memory.h"
#include "engine/kernels/products/product_output.h"

namespace decodelab {

/// Version of the codes and their order, raised with every change of either: what lies on disk is then coded anew.
inline constexpr int kCodingVersion = 1;

/// Holds the weights of y = x W^T, W being [N, K], in panels of 16 outputs: [N / 16][K / 32] groups, of q4_k and q6_k
/// eight in a span, with their scales (coded_layout.h). Four inputs of 16 outputs stand in 64 bytes of codes. Of 4
/// bits, the lower halves are those of inputs 8 j to 8 j + 3, and the upper ones those of the four after them; of 6
/// bits, the upper two follow, those of inputs 16 j + 4 i to 16 j + 4 i + 3 at bit 2 i. N is filled up with weights of
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

  /// Allocates memory for [N, K], to be filled. Throws std::invalid_argument for a gated matrix of an odd N, and of
  /// q4_k and q6_k for a K that is no multiple of 256.
  CodedMatrix(std::int64_t outputs, std::int64_t inputs, WeightCode code, bool gated = false);
  /// Writes what the codes of panels [first, last) stand for to `weights`, [N, K]; threads may take disjoint ranges.
  void decode(std::int64_t first, std::int64_t last, std::span<float> weights) const;
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
  std::int64_t panels() const { return panels_together() * divided_up(results(), codes::kOutputs); }
  std::int64_t panel_bytes() const { return panel_bytes_of(inputs_, code_); }
  std::int64_t bytes() const { return bytes_of(outputs_, inputs_, code_, gated_); }
  const std::byte* panel(std::int64_t index) const { return data_->data() + index * panel_bytes(); }
  /// Returns the memory of a panel, to be filled with what panel() returned in a matrix of the same layout().
  std::span<std::byte> room_of_panel(std::int64_t index);
  /// Returns a name of all that the bytes of given weights depend on: code, shape, order, and the version of the codes.
  std::string layout() const;

  /// Return what panel_bytes() and bytes() of such a matrix will be.
  static std::int64_t panel_bytes_of(std::int64_t inputs, WeightCode code) {
    return codes::header_bytes(code) +
           divided_up(inputs, kCodedGroup) / codes::groups_of_span(code) * codes::span_bytes(code);
  }
  static std::int64_t bytes_of(std::int64_t outputs, std::int64_t inputs, WeightCode code, bool gated);

 private:
  std::int64_t outputs_;
  std::int64_t inputs_;
  WeightCode code_;
  bool gated_;
  std::optional<PanelMemory> data_;
};

/// Computes y for panels [first, last), both multiples of panels_together(): products of codes are summed as integers
/// within a group, groups one after the other in fp32; of q8_row all products as integers, for which a row has at most
/// 2^16 inputs. Every instruction set gives the same bits, and a row's result is
/// the same in any batch. `output` has the shape of the matrix.
void multiply_coded(const CodedMatrix& weights, const CodedRows& x, const ProductOutput& output, std::int64_t first,
                    std::int64_t last, IntegerIsa isa);

}  // namespace decodelab
