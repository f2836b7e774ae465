// Reads a trace in any format that we know, by what the file holds and not by its name.
#pragma once

#include "profiles/write/import_rows.h"

namespace decodelab {

/// Returns the rows of a file of ours (SQLite, JSON), of Nsight Systems (SQLite) or of PyTorch's profiler (JSON, gzipped or not); the
/// caller seals them. Throws std::runtime_error with one sentence that names the file; for a .pftrace it says to write .sqlite too.
TraceEvents import_trace(const std::filesystem::path& path, const ImportLimits& limits = {});

}  // namespace decodelab
