// Rounding of lengths.
#pragma once

#include <cstdint>

namespace decodelab {

/// The least multiple of `multiple` that is not below `value`.
constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace decodelab
