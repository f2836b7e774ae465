// The account of a trace as if it could be believed: what attribute() hands out, and what check I16 adds up.
#pragma once

#include "profiles/trace/attribution.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// Whether the account is of a device's time: a CPU device without operations has none.
bool has_device(const TraceEvents& events);

/// Everything of an Attribution but `believable`, `refusal` and `bound_by`. Needs times whose sums do not overflow, as
/// check I2 sees to.
Attribution account(const Trace& trace);

}  // namespace decodelab
