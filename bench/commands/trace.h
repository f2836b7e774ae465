// The parts of `decodelab trace`, and when a trace counts as believable.
#pragma once

#include "bench/commands/commands.h"
#include "profiles/trace/quality.h"

namespace decodelab {

/// Exit code 0; else 4. A partial trace says what of it may be believed; a contaminated one ranks kernels only, and a
/// broken one says nothing.
inline bool is_believable(TraceVerdict verdict) {
  return verdict == TraceVerdict::ok || verdict == TraceVerdict::warn || verdict == TraceVerdict::partial;
}

/// `verify`, `diff`, `sql`, `import`, `explain`: of files that are there.
void add_trace_file_commands(CLI::App& trace, ExitCode& exit_code);

/// `doctor` and `nsys-command`.
void add_trace_doctor_commands(CLI::App& trace, ExitCode& exit_code);

}  // namespace decodelab
