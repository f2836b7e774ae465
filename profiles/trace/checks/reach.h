// How far apart the stamps of a trace lie and how large its amounts are, without adding any two: files may hold anything.
#pragma once

#include "profiles/trace/events.h"

#include <cstdint>

namespace decodelab {

struct TraceReach {
  double largest =
      0;  ///< Time from the earliest stamp to the latest, or the largest amount; zero and open ends are left out.
  std::int64_t rows = 0;

  /// Whether sums over the rows, of times between stamps or of amounts, stay below a quarter of what 64 bits hold.
  bool adds_up() const;
};
TraceReach reach_of(const TraceEvents& events);

}  // namespace decodelab
