// Reads a trace in any format that we know, by what the file holds and not by its name.
#pragma once

#include "profiles/write/import_rows.h"

namespace decodelab {

/// The rows of a file of ours (.pftrace, JSON, SQLite), of Nsight Systems (SQLite) or of PyTorch's profiler (JSON, gzipped or not); to be
/// sealed by the caller. Throws std::runtime_error with one sentence that names the file.
TraceEvents import_trace(const std::filesystem::path& path, const ImportLimits& limits = {});

}  // namespace decodelab
