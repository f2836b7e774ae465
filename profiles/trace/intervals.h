// Sets of disjoint intervals of time: what of a piece of time lies inside of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace decodelab {

struct Interval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Sorted and disjoint; intervals that overlap become one, empty ones are left out.
inline std::vector<Interval> merge_intervals(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
  std::vector<Interval> merged;
  for (const Interval& interval : intervals) {
    if (interval.end_ns <= interval.start_ns) continue;
    if (!merged.empty() && interval.start_ns < merged.back().end_ns) {
      merged.back().end_ns = std::max(merged.back().end_ns, interval.end_ns);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

/// The first interval of a merged set that ends after `time`; where it begins is not looked at.
inline std::vector<Interval>::const_iterator first_ending_after(const std::vector<Interval>& merged,
                                                                std::int64_t time) {
  return std::upper_bound(merged.begin(), merged.end(), time,
                          [](std::int64_t value, const Interval& interval) { return value < interval.end_ns; });
}

}  // namespace decodelab
