// The summary of a trace as JSON, for gates and reports.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// Returns the summary. Keys are only ever added. Times are ns; a value that is not known is null. Where a trace cannot
/// be accounted for, `refusal` says why, and steps, stages, gaps and operators are empty.
nlohmann::ordered_json summary_json(const Trace& trace, const TraceQuality& quality, const Attribution& attribution);

/// Returns the text of the summary file. Names that are not UTF-8 are repaired.
std::string summary_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution);

}  // namespace decodelab
