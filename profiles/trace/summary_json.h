// The summary of a trace as JSON, for gates and reports.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

/// Keys only ever get added. Times are ns; a value that is not known is null. Of a trace that cannot be accounted for,
/// `refusal` says why, and steps, stages, gaps and operators are empty.
nlohmann::ordered_json summary_json(const Trace& trace, const TraceQuality& quality, const Attribution& attribution);

/// The text of the file. Names that are not UTF-8 are repaired.
std::string summary_text(const Trace& trace, const TraceQuality& quality, const Attribution& attribution);

}  // namespace decodelab
