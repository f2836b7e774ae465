// The edges of a capture that another tool began and ended in the middle of the work.
#pragma once

#include <cstdint>
#include <string>

#include "profiles/trace/events.h"

namespace decodelab {

/// Marks operations whose launch lies before the capture and launches whose operation lies after it, and counts both.
///
/// Correlations rise in the order of launching, so an operation without a call is at the edge where its correlation is
/// below that of the first recorded call of its process, and a launch without an operation where its correlation is
/// above that of the last recorded operation. Rows that are missing between those two were lost inside the capture,
/// which checks I3 and I8 report. Does nothing to traces that we collected ourselves, whose collectors wait for the
/// device at both ends.
void mark_edges(TraceEvents& events);

/// Returns whether a call may start an operation of a device.
bool is_launch(const ApiCall& call);

}  // namespace decodelab
