// I19: what the edges of a capture hide, and what it was not asked to record.
#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {

CheckResult check_capture(const CheckInput& input) {
  const TraceEvents& events = input.events();
  const TraceSession& session = events.session;
  if (!session.foreign) {
    return not_applicable("the collectors wait for the device at both ends of the window");
  }
  CheckResult result{.value = static_cast<double>(session.launched_before + session.outlasting + session.open_ranges)};
  NamedRows edges;
  const auto add = [&](std::int64_t count, const char* noun, const char* what) {
    if (count > 0) {
      edges.add([&] { return fmt::format("{} {}", counted(count, noun), what); });
    }
  };
  add(session.launched_before, "operation", "launched before the capture");
  add(session.outlasting, "call", "that launched what lies behind it");
  add(session.open_ranges, "range", "open at its end");
  add(session.negative_times, "row", "before time 0");
  const bool cut = edges.count() > 0;
  if (session.graph_granularity) {
    edges.add([] { return "graphs are whole rows, without their kernels"; });
  }
  if (!events.operations.empty() && events.api_calls.empty()) {
    edges.add([] { return "no calls, so gaps have no cause"; });
  }
  result.evidence = "nothing lies across its edges";
  if (edges.count() > 0) {
    result.status = CheckStatus::partial;
    result.evidence = (cut ? "cut off at the edges: " : "") + edges.text();
    // A trace whose only finding is rows before time 0 is complete.
    const bool only_moved = edges.count() == 1 && session.negative_times > 0;
    if (only_moved) {
      result.status = CheckStatus::passed;
    }
  }
  return result;
}

}  // namespace decodelab
