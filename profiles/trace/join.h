// Joins the rows of a trace with one another: spans with those around them, calls with spans, operations with calls,
// nodes and lanes.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/trace/events.h"

namespace decodelab {

/// Fills the depth of every span, and copies step, layer and stage from the span around it where a span names none.
/// Returns for each call the row of the innermost span that was open on its thread at its start, or kNoRow. Rows must
/// be sorted. A span that is still open contains nothing.
std::vector<std::int64_t> place_on_host(TraceEvents& events);

/// Fills api_row, step, layer and stage of the operations. `spans_of_calls` is the result of place_on_host().
void join_operations(TraceEvents& events, const std::vector<std::int64_t>& spans_of_calls);

/// Fills DeviceOperation::lane with the lowest lane that is free, per device, context and stream. `operations` must be
/// sorted by start.
void fill_lanes(std::vector<DeviceOperation>& operations);

/// Returns the row in `steps` (sorted by start) of the step that `time_ns` lies in, or kNoRow.
std::int64_t step_row_at(const std::vector<Step>& steps, std::int64_t time_ns);

}  // namespace decodelab
