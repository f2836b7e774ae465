// Activations rounded to 8 bits, as products with coded weights take them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/round_up.h"
#include "engine/kernels/element_type.h"
#include "engine/kernels/products/coded/weight_code.h"

namespace decodelab {

/// Holds rows of K activations as codes from -127 to 127, with a scale for every 32 inputs: the largest magnitude over
/// 127. Codes are rounded to the nearest, half to even. K is filled up with zeros to whole groups.
class CodedRows {
 public:
  CodedRows(std::int64_t rows, std::int64_t inputs);
  /// Codes rows [first, last) of `x`, K elements of fp32 or bf16 each, `stride` elements apart; threads may take
  /// disjoint ranges.
  void fill(const void* x, ElementType dtype, std::int64_t stride, std::int64_t first, std::int64_t last);

  std::int64_t rows() const { return rows_; }
  std::int64_t groups() const { return groups_; }
  const std::int8_t* codes(std::int64_t row) const { return codes_.data() + row * groups_ * kCodedGroup; }
  const float* scales(std::int64_t row) const { return scales_.data() + row * groups_; }
  /// Returns the sum of the codes of each group.
  const std::int32_t* sums(std::int64_t row) const { return sums_.data() + row * groups_; }

 private:
  std::int64_t rows_;
  std::int64_t inputs_;
  std::int64_t groups_;
  std::vector<std::int8_t> codes_;
  std::vector<float> scales_;
  std::vector<std::int32_t> sums_;
};

}  // namespace decodelab
