// Computes the account of a trace without asking whether the trace can be believed. attribute() returns it, and check
// I16 adds it up.
#pragma once

#include "profiles/trace/attribution.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// Returns whether the account covers the time of a device; that of a CPU without device operations does not.
bool has_device(const TraceEvents& events);

/// Returns an Attribution with everything but `believable`, `refusal` and `bound_by`. Needs times whose sums do not
/// overflow, which check I2 makes sure of.
Attribution account(const Trace& trace);

}  // namespace decodelab
