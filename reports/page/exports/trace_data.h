// The accounts of traces as data: CSV with a line for each stage or gap, and JSON lines with one for each trace.
#pragma once

#include <string>

#include "reports/store/record.h"

namespace decodelab {

/// Returns CSV: a header and, for each trace, a line per share, with the trace's own fields repeated, then a line of
/// kind `residual` for the time in no stage, so that the `host_ns` of kinds `stage` and `residual` add up to
/// `steps_ns`. A broken trace has only the line of kind `residual`. `arm` selects one arm; empty selects all.
std::string traces_to_csv(const RunData& data, const std::string& arm = "");

/// Returns a line per trace, each a JSON object with `run` (the uuid), its cell and `shares`, a list. A perturbation
/// that was not measured is null.
std::string traces_to_jsonl(const RunData& data, const std::string& arm = "");

}  // namespace decodelab
