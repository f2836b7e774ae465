// Where the time of host threads went: the self time of every span, and one thread's time cut into pieces with one
// owner each.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/trace/trace.h"

namespace decodelab {

/// A piece of a thread's time, and the innermost span in it.
struct HostSegment {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t span_row = kNoRow;
};

/// What is around a span, itself included.
struct SpanPlace {
  bool in_stage = false;  ///< Else the time is in no stage, and `stage` is `other`.
  Stage stage = Stage::other;
  std::int32_t layer = kNoLayer;
  std::int64_t operator_row = kNoRow;  ///< Innermost operator inside of the stage.
};

/// By row of TraceEvents::spans. Spans that are still open, and spans that do not nest, count for nothing outside of
/// what is around them, so that no time is given away twice.
struct HostTimes {
  std::vector<std::int64_t> self_ns;
  std::vector<SpanPlace> places;
  std::vector<HostSegment> segments;  ///< Of `thread` only, in order, where a span is open.
};
HostTimes host_times(const TraceEvents& events, std::int64_t thread);

/// The thread that runs the steps: as the session says, or that of the first step's span, or of the first span.
std::int64_t step_thread(const TraceEvents& events);

}  // namespace decodelab
