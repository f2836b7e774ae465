// Reads back the .pftrace files that we write.
#pragma once

#include "profiles/write/import_rows.h"

namespace decodelab {

/// The rows of a file of write_perfetto(), not sealed. Throws std::runtime_error with one sentence for anything else: files of other
/// writers say nothing of steps and launches in a form that could be verified.
TraceEvents import_perfetto(const std::filesystem::path& path, const ImportLimits& limits = {});

}  // namespace decodelab
