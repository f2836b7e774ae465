// Merges intervals of time into sets of disjoint intervals, and searches such sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace decodelab {

struct TimeInterval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Returns the intervals sorted and disjoint: those that overlap become one, and empty ones are left out.
inline std::vector<TimeInterval> merge_intervals(std::vector<TimeInterval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.start_ns < b.start_ns; });
  std::vector<TimeInterval> merged;
  for (const TimeInterval& interval : intervals) {
    if (interval.end_ns <= interval.start_ns) {
      continue;
    }
    if (!merged.empty() && interval.start_ns < merged.back().end_ns) {
      merged.back().end_ns = std::max(merged.back().end_ns, interval.end_ns);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

/// Returns the first interval of a merged set that ends after `time`, even if it also begins after `time`.
inline std::vector<TimeInterval>::const_iterator first_ending_after(const std::vector<TimeInterval>& merged,
                                                                    std::int64_t time) {
  return std::upper_bound(merged.begin(), merged.end(), time,
                          [](std::int64_t value, const TimeInterval& interval) { return value < interval.end_ns; });
}

}  // namespace decodelab
