// Computes where the time of host threads went: the self time of every span, and one thread's time cut into pieces with
// one owner each.
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

/// The stage, layer and operator that a span lies in, the span itself included.
struct SpanPlace {
  bool in_stage = false;  ///< Else the time is in no stage, and `stage` is `other`.
  Stage stage = Stage::other;
  std::int32_t layer = kNoLayer;
  std::int64_t operator_row = kNoRow;  ///< Innermost operator inside of the stage.
};

/// Times of spans; `self_ns` and `places` are indexed by row of TraceEvents::spans. A span that is still open has no
/// time, and one that does not nest counts only inside the span around it, so that no time is counted twice.
struct HostTimes {
  std::vector<std::int64_t> self_ns;
  std::vector<SpanPlace> places;
  std::vector<HostSegment> segments;  ///< Pieces of `thread` only, in order, while a span is open.
};
HostTimes host_times(const TraceEvents& events, std::int64_t thread);

/// Returns the thread that runs the steps: the one that the session names, or that of the first step's span, or of the
/// first span.
std::int64_t step_thread(const TraceEvents& events);

}  // namespace decodelab
