// The parts of `decodelab trace`, and when a trace counts as believable.
#pragma once

#include "bench/commands/commands.h"
#include "profiles/trace/quality.h"

namespace decodelab {

/// Returns whether a trace with this verdict ends with exit code 0; else the code is 4. A partial trace says what of it
/// may be believed; a contaminated one ranks kernels only, and a broken one says nothing.
inline bool is_believable(TraceVerdict verdict) {
  return verdict == TraceVerdict::ok || verdict == TraceVerdict::warn || verdict == TraceVerdict::partial;
}

/// Adds `verify`, `diff`, `sql`, `import` and `explain`, which read trace files.
void add_trace_file_commands(CLI::App& trace, ExitCode& exit_code);

/// Adds `doctor` and `nsys-command`.
void add_trace_doctor_commands(CLI::App& trace, ExitCode& exit_code);

}  // namespace decodelab
