// Selects one process on one device from a trace that may hold several. An account is always of one such view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/trace/events.h"
#include "profiles/trace/intervals.h"

namespace decodelab {

/// A process and the device that it used; kNoDevice where it used none.
struct TraceView {
  std::int64_t process = 0;
  std::int32_t device = -1;
  bool operator==(const TraceView&) const = default;
};
inline constexpr std::int32_t kNoDevice = -1;

/// Returns "process 111, GPU 0".
std::string to_string(const TraceView& view);

/// What a command asks to see of a trace.
struct ViewRequest {
  std::optional<std::int64_t> process;
  std::optional<std::int32_t> device;
  /// A regular expression for the names of ranges that are steps. Where it is empty, find_steps() chooses the steps.
  std::string step_range;
  std::optional<TimeInterval> window;  ///< Times count from the first row of the file.

  bool anything() const { return process || device || !step_range.empty() || window; }
};

/// Returns every process with every device that it used, in order. Processes without operations are listed only where
/// no process has any. Throws std::invalid_argument, which lists what there is, where `request` asks for a process or
/// device that the trace does not have.
std::vector<TraceView> views_of(const TraceEvents& events, const ViewRequest& request);

/// Returns the rows of one view, with edges marked and steps found (capture.h, find_steps.h). A trace that we collected
/// is returned as it is unless `request` asks for a window or for ranges. Throws std::invalid_argument as find_steps()
/// does.
TraceEvents view_events(const TraceEvents& events, const TraceView& view, const ViewRequest& request);

}  // namespace decodelab
