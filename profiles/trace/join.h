// Joins the rows of a trace with one another: spans with those around them, calls with spans, operations with calls,
// nodes and lanes.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/trace/events.h"

namespace decodelab {

/// Fills depth, and where a span names none the step, layer and stage of the span around it. Returns for each call the
/// row of the innermost span around its start on its thread, or kNoRow. Rows are sorted; spans that are still open are
/// around nothing.
std::vector<std::int64_t> place_on_host(TraceEvents& events);

/// Fills api_row, step, layer and stage of the operations. `spans_of_calls` is what place_on_host() returned.
void join_operations(TraceEvents& events, const std::vector<std::int64_t>& spans_of_calls);

/// Fills DeviceOperation::lane: the lowest that is free, per device, context and stream. `operations` are sorted by
/// start.
void fill_lanes(std::vector<DeviceOperation>& operations);

/// The place in `steps` (sorted by start) of the one that `time_ns` lies in, or kNoRow.
std::int64_t step_row_at(const std::vector<Step>& steps, std::int64_t time_ns);

}  // namespace decodelab
