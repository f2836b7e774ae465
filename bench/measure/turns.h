// In which order the open visits of a cell take turns, so that a slow spell of the machine hits all of them alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bench/measure/worker.h"

namespace decodelab {

/// Calls `turn(place, timing)` for the visit at each place in turn, forth and back, until each has timed `steps` steps;
/// `timing`, called with the visit, times `slice` steps of it, or the fewer that are left.
template <typename Turn>
void take_turns_of_slices(std::size_t visits, std::int64_t steps, std::int64_t slice, Turn&& turn) {
  std::vector<std::size_t> places(visits);
  std::iota(places.begin(), places.end(), std::size_t{0});
  for (std::int64_t timed = 0; timed < steps; timed += slice) {
    for (const std::size_t place : places) {
      turn(place, [&](OpenVisit& visit) { visit.time_slice(std::min(slice, steps - timed)); });
    }
    std::ranges::reverse(places);
  }
}

/// Calls `turn(place, timing)` for the visit that has done the least share of its steps, until all are done; `timing`,
/// called with the visit, times one round of it, or all `steps` of a visit that has no rounds.
///
/// Arms whose steps have few rounds and arms whose steps have many thus get through them at one pace.
template <typename Turn>
void take_turns_of_rounds(std::size_t visits, std::int64_t steps, Turn&& turn) {
  std::vector<double> done(visits, 0);
  for (auto next = done.begin(); *next < 1; next = std::ranges::min_element(done)) {
    turn(static_cast<std::size_t>(next - done.begin()), [&](OpenVisit& visit) { *next = visit.time_round(steps); });
  }
}

}  // namespace decodelab
