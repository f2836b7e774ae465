// Reads a trace in any format that we know, by what the file holds and not by its name.
#pragma once

#include "profiles/write/import_rows.h"

namespace decodelab {

/// Returns the rows of a file of ours (SQLite, JSON), of Nsight Systems (SQLite) or of PyTorch's profiler (JSON,
/// gzipped or not); the caller seals them. Throws std::runtime_error with one sentence that names the file; for a
/// .pftrace it says to write .sqlite too.
TraceEvents import_trace(const std::filesystem::path& path, const ImportLimits& limits = {});

/// The rows of a file, not sealed. Columns that versions before 3.25.0 lack are missed where nothing can stand for
/// them: a table must have start and end, and kernels of several processes must say whose they are. NVTX push-pop
/// ranges are spans; "step" with a number behind it or as its payload is a step, a stage's or "layer N" such a span.
/// Captures with --cuda-graph-trace=graph have graphs as rows and set TraceSession::graph_granularity. Throws
/// std::runtime_error with one sentence where the file is no such export.
TraceEvents import_nsys(const std::filesystem::path& path, const ImportLimits& limits = {});

/// The rows of a JSON file, gzipped or not; not sealed. In files of others a ProfilerStep#N is a step, and of their
/// events operators, annotations, runtime and driver calls, kernels, copies, sets, waits, overheads and counters with
/// one value are taken. Throws std::runtime_error with one sentence where the file is no such trace.
TraceEvents import_kineto(const std::filesystem::path& path, const ImportLimits& limits = {});

}  // namespace decodelab
