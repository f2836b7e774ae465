// Reads a trace in any format that we know, by what the file holds and not by its name.
#pragma once

#include "profiles/write/import_rows.h"

namespace decodelab {

/// Returns the rows of a file of ours (SQLite, JSON), of Nsight Systems (SQLite) or of PyTorch's profiler (JSON,
/// gzipped or not); the caller seals them. Throws std::runtime_error with one sentence that names the file; for a
/// .pftrace it says to write .sqlite too.
TraceEvents import_trace(const std::filesystem::path& path, const ImportLimits& limits = {});

/// Returns the rows of an nsys export, not sealed. Columns that versions before 3.25.0 lack may be missing unless
/// nothing can stand for them: a table must have start and end, and kernels of several processes must say whose they
/// are. NVTX push-pop ranges become spans: a range "step" with a number behind it or as its payload is a step, and a
/// range with the name of a stage or "layer N" is a span of that stage or layer. Captures with --cuda-graph-trace=graph
/// have graphs as rows and set TraceSession::graph_granularity. Throws std::runtime_error with one sentence where the
/// file is no such export.
TraceEvents import_nsys(const std::filesystem::path& path, const ImportLimits& limits = {});

/// Returns the rows of a JSON file, gzipped or not; not sealed. In files that other tools wrote a ProfilerStep#N is a
/// step, and only operators, annotations, runtime and driver calls, kernels, copies, sets, waits, overheads and
/// counters with one value are read. Throws std::runtime_error with one sentence where the file is no such trace.
TraceEvents import_kineto(const std::filesystem::path& path, const ImportLimits& limits = {});

}  // namespace decodelab
