// Rounding of lengths and counts.
#pragma once

#include <cstdint>

namespace decodelab {

/// Returns how many parts of `size` hold `value`.
constexpr std::int64_t divided_up(std::int64_t value, std::int64_t size) { return (value + size - 1) / size; }

/// Returns the least multiple of `multiple` that is not below `value`.
constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return divided_up(value, multiple) * multiple;
}

}  // namespace decodelab
