// Rounds activations to 8 bits.
#include "engine/kernels/products/coded/coded_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace decodelab {
namespace {

using Group = std::array<float, kCodedGroup>;

/// Groups below it are zeros: 127 over it would be no number.
constexpr float kLeastMagnitude = 1e-30F;

float value_at(const float* x, std::int64_t index) { return x[index]; }
float value_at(const std::uint16_t* x, std::int64_t index) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x[index]) << 16);
}

template <typename Element>
Group read_group(const Element* x, std::int64_t count) {
  Group group{};
  for (std::int64_t index = 0; index < count; ++index) {
    group[static_cast<std::size_t>(index)] = value_at(x, index);
  }
  return group;
}

}  // namespace

CodedRows::CodedRows(std::int64_t rows, std::int64_t inputs)
    : rows_(rows),
      inputs_(inputs),
      groups_(divided_up(inputs, kCodedGroup)),
      codes_(static_cast<std::size_t>(rows * groups_ * kCodedGroup)),
      scales_(static_cast<std::size_t>(rows * groups_)),
      sums_(static_cast<std::size_t>(rows * groups_)) {}

void CodedRows::fill(const void* x, ElementType dtype, std::int64_t stride, std::int64_t first, std::int64_t last) {
  if (dtype == ElementType::float16) {
    throw std::invalid_argument("activations are coded from fp32 or bf16, not from fp16");
  }
  for (std::int64_t place = first * groups_; place < last * groups_; ++place) {
    const std::int64_t begin = place % groups_ * kCodedGroup;
    const std::int64_t from = place / groups_ * stride + begin;
    const std::int64_t count = std::min(kCodedGroup, inputs_ - begin);
    const Group group = dtype == ElementType::bfloat16 ? read_group(static_cast<const std::uint16_t*>(x) + from, count)
                                                       : read_group(static_cast<const float*>(x) + from, count);
    float largest = 0;
    float total = 0;
    for (const float value : group) {
      largest = std::max(largest, std::abs(value));
      total += std::abs(value);
    }
    const bool finite = std::isfinite(total);  // Else the scale says so, and all that is made of the group.
    const float inverse = finite && largest > kLeastMagnitude ? 127 / largest : 0;
    std::int8_t* const codes = codes_.data() + place * kCodedGroup;
    std::int32_t sum = 0;
    for (std::size_t index = 0; index < group.size(); ++index) {
      const auto code = finite ? static_cast<std::int32_t>(std::nearbyint(group[index] * inverse)) : 0;
      codes[index] = static_cast<std::int8_t>(code);
      sum += code;
    }
    scales_[static_cast<std::size_t>(place)] = finite ? largest / 127 : std::numeric_limits<float>::quiet_NaN();
    sums_[static_cast<std::size_t>(place)] = sum;
  }
}

}  // namespace decodelab
