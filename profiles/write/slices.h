// Lays intervals of time into lanes in which they nest, since viewers measure slices of one track wrongly where they
// overlap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace decodelab {

/// An interval to be laid out. `item` names the row that it stands for and is only understood by the caller.
struct Slice {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;  ///< Not before the start.
  std::uint64_t item = 0;
};

/// The begin or the end of a slice.
struct Edge {
  std::int64_t time_ns = 0;
  std::uint64_t item = 0;
  bool begin = false;
};

/// The most lanes. More would not be readable, and each lane costs every later slice a comparison.
inline constexpr std::size_t kMostLanes = 256;

/// Returns the edges of each lane in the order in which they must be written: by time, and at one time first the ends
/// of what began before it. Within a lane every slice lies wholly inside another or beside it. `sorted` must be sorted
/// by start, longer slices first at ties. Throws std::runtime_error where kMostLanes do not suffice.
std::vector<std::vector<Edge>> lay_out(std::span<const Slice> sorted);

/// Returns whether `a` comes before `b` in the order that lay_out() needs.
inline bool in_lane_order(const Slice& a, const Slice& b) {
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
}

}  // namespace decodelab
