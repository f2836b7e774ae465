// Lays intervals of time into lanes in which they nest, since viewers measure slices of one track wrongly where they
// overlap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace decodelab {

/// A row of any table, by a number that only the caller understands.
struct Slice {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;  ///< Not before the start.
  std::uint64_t item = 0;
};

/// One end of an slice.
struct Edge {
  std::int64_t time_ns = 0;
  std::uint64_t item = 0;
  bool begin = false;
};

/// More lanes than this are no picture any more, and each costs every later slice a look.
inline constexpr std::size_t kMostLanes = 256;

/// The edges of each lane in the order in which they must be written: by time, and at one time first the ends of what
/// began before it. Within a lane every slice lies wholly inside another or beside it. `sorted` is by start, longer
/// first at ties. Throws std::runtime_error where kMostLanes do not suffice.
std::vector<std::vector<Edge>> lay_out(std::span<const Slice> sorted);

/// The order that lay_out() wants.
inline bool in_lane_order(const Slice& a, const Slice& b) {
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
}

}  // namespace decodelab
