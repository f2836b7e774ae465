// What `trace` prints: the verdict, where the time went, what moved, and which checks said so.
#pragma once

#include "profiles/trace/attribution.h"
#include "profiles/trace/difference.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

#include <string>

namespace decodelab {

/// All lines end with a newline and have 100 columns at most. A trace that cannot be believed is its reason, without numbers; of a
/// contaminated one nothing is said about the host.
std::string trace_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution);

/// Every check, in order: what it is, what it says, and why it says nothing where it does.
std::string explain_text(const TraceQuality& quality);

/// `a` and `b` name the two traces, as their files or arms.
std::string difference_text(const TraceDifference& difference, const std::string& a, const std::string& b);

}  // namespace decodelab
