// What `trace` prints: the verdict, where the time went, what moved, and which checks said so.
#pragma once

#include <string>
#include <string_view>

#include "profiles/trace/attribution.h"
#include "profiles/trace/difference.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// All lines end with a newline and have 100 columns at most. The first line says the result, behind `heading`. A trace
/// that cannot be believed is its reason, without numbers; of a contaminated one nothing is said about the host. Names
/// are short ones (names.h).
std::string trace_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                       std::string_view heading = "");

/// The verdict and every check, in order: what it is, what it says, and why it says nothing where it does. Two lines
/// each at most; the summary has all of it.
std::string explain_text(const TraceQuality& quality, std::string_view heading = "");

/// `a` and `b` name the two traces, as their files or arms.
std::string difference_text(const TraceDifference& difference, const std::string& a, const std::string& b,
                            std::string_view heading = "");

/// The first lines of the three, without a newline.
std::string account_sentence(const Trace& trace, const TraceQuality& quality, const Attribution& account);
std::string verdict_sentence(const TraceQuality& quality);
std::string difference_sentence(const TraceDifference& difference, const std::string& a, const std::string& b);

/// Where a row of a difference lies: "gap: sync", "mlp 3 aten::mm".
std::string place_text(const DifferenceRow& row);

}  // namespace decodelab
