// Decides whether a trace can be believed, by checks that need nothing but the trace.
#pragma once

#include <string>
#include <vector>

#include "profiles/trace/trace.h"

namespace decodelab {

/// Verdicts on a trace, from best to worst. An analysis of a broken trace prints the reason instead of numbers. A
/// contaminated trace may rank kernels but not host time. TraceQuality::believe says what of a partial trace may be
/// believed. `untraced` means that there was nothing to record, such as a device on a machine without one.
enum class TraceVerdict { ok, warn, contaminated, partial, broken, untraced };
const char* to_string(TraceVerdict verdict);

enum class CheckStatus { passed, excluded, warned, partial, failed, not_applicable };
const char* to_string(CheckStatus status);

/// One of the checks I1 to I19; each file of profiles/trace/checks says what its own mean.
struct TraceCheck {
  std::string id;     ///< "I4"
  std::string title;  ///< "no kernel starts before its launch"
  CheckStatus status = CheckStatus::not_applicable;
  double value = 0;
  double limit = 0;
  /// What the check saw, or why it does not apply, in one sentence that names at most five rows.
  std::string evidence;
};

struct TraceQuality {
  TraceVerdict verdict = TraceVerdict::untraced;
  std::string reason;  ///< The evidence of the worst check; empty where the verdict is ok.
  std::vector<TraceCheck> checks;
  std::string believe;  ///< Of a partial trace: what may be believed; else empty.
};

/// Runs every check and returns the verdict.
TraceQuality verify(const Trace& trace);

}  // namespace decodelab
