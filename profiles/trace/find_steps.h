// Finds the steps of traces that were not marked for us: by ranges, by launches of CUDA graphs, or the whole window as
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/trace/events.h"
#include "profiles/trace/intervals.h"

namespace decodelab {

/// A kind of range (range_kind()) that may be a step: its name, how often it occurs, and how long it takes.
struct RangeCandidate {
  std::string name;
  std::int64_t count = 0;
  std::int64_t median_ns = 0;
  std::int64_t total_ns = 0;
};

/// Returns the `most` kinds of ranges that occur twice or more and cover most time, longest first.
std::vector<RangeCandidate> step_candidates(const TraceEvents& events, std::size_t most);

/// Fills the steps of a foreign trace of one process and one device, and says in TraceSession::steps_from what they
/// are.
///
/// With `step_range` (a regular expression of ECMAScript that must be found in a range's name) each outermost range
/// that fits is a step, on the thread that has most of them. Otherwise the steps are those that the trace marks. If
/// there are none, a trace with two or more launches of CUDA graphs has one step from each launch to the next. If there
/// are none of those either, the whole window is one step. `window` keeps only the steps that lie inside of it, and is
/// itself the one step where there are no others. Throws std::invalid_argument where `step_range` is no regular
/// expression, where it fits no range (the message lists candidates), or where `window` holds nothing.
void find_steps(TraceEvents& events, const std::string& step_range, const std::optional<TimeInterval>& window);

}  // namespace decodelab
