// Reads traces of PyTorch's profiler, and those that we write in its format.
#pragma once

#include "profiles/write/import_rows.h"

namespace decodelab {

/// The rows of a JSON file, gzipped or not; not sealed. In files of others a ProfilerStep#N is a step, and of their events operators,
/// annotations, runtime and driver calls, kernels, copies, sets, waits, overheads and counters with one value are taken. Throws
/// std::runtime_error with one sentence where the file is no such trace.
TraceEvents import_kineto(const std::filesystem::path& path, const ImportLimits& limits = {});

}  // namespace decodelab
