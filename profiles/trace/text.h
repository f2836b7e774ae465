// Writes what `trace` prints: the verdict, where the time went, what changed, and which checks said so.
#pragma once

#include <string>
#include <string_view>

#include "profiles/trace/attribution.h"
#include "profiles/trace/difference.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// Returns the report on a trace, in lines of at most 100 columns that all end with a newline. The first line says the
/// result, after `heading`. The report on a trace that cannot be believed is the reason, without numbers; that on a
/// contaminated trace leaves out the host. Names are shortened (names.h).
std::string trace_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                       std::string_view heading = "");

/// Returns the verdict and every check in order: what it checks, what it found, or why it does not apply. Each check
/// takes at most two lines; the summary has the whole text.
std::string explain_text(const TraceQuality& quality, std::string_view heading = "");

/// Returns the report on a difference. `a` and `b` name the two traces, as their files or arms.
std::string difference_text(const TraceDifference& difference, const std::string& a, const std::string& b,
                            std::string_view heading = "");

/// These return the first lines of the three reports, without a newline.
std::string account_sentence(const Trace& trace, const TraceQuality& quality, const Attribution& account);
std::string verdict_sentence(const TraceQuality& quality);
std::string difference_sentence(const TraceDifference& difference, const std::string& a, const std::string& b);

/// Returns where a row of a difference lies: "gap: sync", "mlp 3 aten::mm".
std::string place_text(const DifferenceRow& row);

}  // namespace decodelab
