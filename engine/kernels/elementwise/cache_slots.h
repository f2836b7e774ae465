// Where a step's keys and values go when the kernel that makes keys also writes the cache.
#pragma once

#include <cstdint>

namespace decodelab {

/// Describes the cache of one layer, on the host or the device. The slot of a token is its position. Rows are
/// `row_stride` elements apart, slots `slot_stride`, for keys and values alike.
struct CacheSlots {
  void* keys = nullptr;  ///< Of row 0 and slot 0; null: there is no cache, and keys stay where they are.
  void* values = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t slot_stride = 0;
  std::int64_t tokens = 1;  ///< T: the step has so many tokens of each row, one row after the other.
};

}  // namespace decodelab
