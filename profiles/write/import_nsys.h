// Reads the SQLite exports of Nsight Systems, and the files that we write in their shape.
#pragma once

#include "profiles/write/import_rows.h"

namespace decodelab {

/// The rows of a file, not sealed. Columns that versions before 3.25.0 lack are missed where nothing can stand for them: a table must
/// have start and end, and kernels of several processes must say whose they are. NVTX push-pop ranges are spans; "step" with a number
/// behind it or as its payload is a step, a stage's or "layer N" such a span. Captures with --cuda-graph-trace=graph have graphs as
/// rows and set TraceSession::graph_granularity. Throws std::runtime_error with one sentence where the file is no such export.
TraceEvents import_nsys(const std::filesystem::path& path, const ImportLimits& limits = {});

}  // namespace decodelab
