// The accounts of traces as data: CSV with a line for each stage or gap, and JSON lines with one for each trace.
#pragma once

#include <string>

#include "reports/store/record.h"

namespace decodelab {

/// A header and a line for each share of each trace, the trace's own fields repeated; then one of kind `residual` for
/// the time in no stage, so that the `host_ns` of kinds `stage` and `residual` add up to `steps_ns`. A broken trace has
/// the line of kind `residual` only. `arm` keeps one arm; empty keeps all.
std::string traces_to_csv(const RunData& data, const std::string& arm = "");

/// A JSON object per line, a line per trace, each with `run` (the uuid), its cell and `shares`, a list. A perturbation
/// that was not measured is null.
std::string traces_to_jsonl(const RunData& data, const std::string& arm = "");

}  // namespace decodelab
