// Activations rounded to 8 bits, as products with coded weights take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/round_up.h"
#include "engine/kernels/element_type.h"
#include "engine/kernels/products/coded/weight_code.h"

namespace decodelab {

/// Rows of K activations as codes from -127 to 127, with a scale for every 32 inputs: the largest magnitude over 127.
/// Codes are rounded to the nearest, half to even. K is filled up with zeros to whole groups. The memory is the
/// caller's.
///
/// For weights of q8_row all inputs of a row share a scale: the first scale and the first sum of a row are those of all
/// of it, and the others are undefined.
class CodedRows {
 public:
  /// Returns the bytes of memory that so many rows need.
  static constexpr std::int64_t bytes(std::int64_t rows, std::int64_t inputs) {
    return rows * divided_up(inputs, kCodedGroup) * kGroupBytes;
  }

  /// `memory` has at least bytes(rows, inputs) and is aligned to 4; else std::invalid_argument.
  CodedRows(std::int64_t rows, std::int64_t inputs, std::span<std::byte> memory, bool one_scale = false);
  /// Codes rows [first, last) of `x`, K elements of fp32 or bf16 each, `stride` elements apart; threads may take
  /// disjoint ranges. Every processor gives the same codes.
  void fill(const void* x, ElementType dtype, std::int64_t stride, std::int64_t first, std::int64_t last) const;

  std::int64_t rows() const { return rows_; }
  bool one_scale() const { return one_scale_; }
  std::int64_t groups() const { return groups_; }
  const std::int8_t* codes(std::int64_t row) const { return codes_ + row * groups_ * kCodedGroup; }
  const float* scales(std::int64_t row) const { return scales_ + row * groups_; }
  /// Return the sum of the codes of each group, and of the first half of each.
  const std::int32_t* sums(std::int64_t row) const { return sums_ + row * groups_; }
  const std::int32_t* first_sums(std::int64_t row) const { return first_sums_ + row * groups_; }

 private:
  /// A code for each input, a scale and two sums.
  static constexpr std::int64_t kGroupBytes = kCodedGroup + 12;

  std::int64_t rows_;
  std::int64_t inputs_;
  std::int64_t groups_;
  bool one_scale_;
  float* scales_;
  std::int32_t* sums_;
  std::int32_t* first_sums_;
  std::int8_t* codes_;
};

}  // namespace decodelab
