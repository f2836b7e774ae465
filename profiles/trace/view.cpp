// Filters rows by process and device, and narrows the window to the part that the capture holds completely.
#include "profiles/trace/view.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "profiles/trace/capture.h"
#include "profiles/trace/find_steps.h"

namespace decodelab {
namespace {

std::set<std::pair<std::int64_t, std::int32_t>> all_views(const TraceEvents& events) {
  std::set<std::pair<std::int64_t, std::int32_t>> views;
  for (const DeviceOperation& operation : events.operations) {
    views.emplace(operation.process, operation.device);
  }
  if (!views.empty()) {
    return views;
  }
  for (const ApiCall& call : events.api_calls) {
    views.emplace(call.process, kNoDevice);
  }
  if (views.empty()) {
    views.emplace(events.session.process, kNoDevice);
  }
  return views;
}

template <typename Row, typename Keep>
void keep_rows(std::vector<Row>& rows, Keep keep) {
  std::erase_if(rows, [&](const Row& row) { return !keep(row); });
}

void keep_process(TraceEvents& events, std::int64_t process) {
  std::unordered_set<std::int64_t> others;
  for (const ApiCall& call : events.api_calls) {
    if (call.process != process) {
      others.insert(call.thread);
    }
  }
  const TraceSession& session = events.session;
  keep_rows(events.spans, [&](const HostSpan& row) { return session.process_of(row.process) == process; });
  keep_rows(events.api_calls, [&](const ApiCall& row) { return row.process == process; });
  for (const ApiCall& call : events.api_calls) {
    others.erase(call.thread);
  }
  keep_rows(events.operations, [&](const DeviceOperation& row) { return row.process == process; });
  keep_rows(events.waits, [&](const Wait& row) { return row.process == process; });
  keep_rows(events.overheads, [&](const Overhead& row) { return !others.contains(row.thread); });
  for (HostSpan& span : events.spans) {
    span.process = 0;
  }
  events.session.process = process;
}

/// Keeps the operations of one device, and removes launches onto other devices, whose operations would seem to be
/// missing.
void keep_device(TraceEvents& events, std::int32_t device) {
  std::unordered_set<std::uint32_t> elsewhere;
  for (const DeviceOperation& row : events.operations) {
    if (row.device != device) {
      elsewhere.insert(row.correlation);
    }
  }
  keep_rows(events.operations, [&](const DeviceOperation& row) { return row.device == device; });
  for (const DeviceOperation& row : events.operations) {
    elsewhere.erase(row.correlation);
  }
  keep_rows(events.api_calls,
            [&](const ApiCall& row) { return !(is_launch(row) && elsewhere.contains(row.correlation)); });
}

/// Makes the thread that launches most the main thread, where that of the session belongs to another process.
void choose_thread(TraceEvents& events) {
  std::map<std::int64_t, std::int64_t> launches;
  std::set<std::int64_t> known;
  for (const HostSpan& span : events.spans) {
    known.insert(span.thread);
  }
  for (const ApiCall& call : events.api_calls) {
    known.insert(call.thread);
    if (is_launch(call)) {
      ++launches[call.thread];
    }
  }
  if (known.empty() || known.contains(events.session.main_thread)) {
    return;
  }
  const auto most = std::max_element(launches.begin(), launches.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  events.session.main_thread = most == launches.end() ? *known.begin() : most->first;
}

/// Ends the ranges that were still open when the capture ended at the end of the capture, and counts them.
void close_ranges(TraceEvents& events) {
  events.session.open_ranges = 0;
  for (HostSpan& span : events.spans) {
    if (span.end_ns != 0) {
      continue;
    }
    span.end_ns = std::max(span.start_ns, events.session.capture_end_ns);
    if (span.kind == SpanKind::step) {
      span.kind = SpanKind::other;
    }
    ++events.session.open_ranges;
  }
}

/// Narrows the window to the time in which the work of the device is known: from its first recorded operation where
/// more was launched before the capture, and to its last one where launches outlast the capture.
void narrow_window(TraceEvents& events) {
  TraceSession& session = events.session;
  session.window_start_ns = session.capture_start_ns;
  session.window_end_ns = session.capture_end_ns;
  if (events.operations.empty()) {
    return;
  }
  std::int64_t first_ns = events.operations.front().start_ns;
  std::int64_t last_ns = events.operations.front().end_ns;
  for (const DeviceOperation& row : events.operations) {
    first_ns = std::min(first_ns, row.start_ns);
    last_ns = std::max(last_ns, row.end_ns);
  }
  // Without calls nobody knows what was launched before and after the capture.
  const bool unknown = events.api_calls.empty();
  session.launched_before = std::count_if(events.operations.begin(), events.operations.end(),
                                          [](const DeviceOperation& row) { return row.launched_before; });
  if (session.launched_before > 0 || unknown) {
    session.window_start_ns = first_ns;
  }
  if (session.outlasting > 0 || unknown) {
    session.window_end_ns = last_ns;
  }
}

std::string list(const std::set<std::pair<std::int64_t, std::int32_t>>& views) {
  std::string text;
  for (const auto& [process, device] : views) {
    text += (text.empty() ? "" : "; ") + to_string({.process = process, .device = device});
  }
  return text;
}

}  // namespace

std::string to_string(const TraceView& view) {
  const std::string process = fmt::format("process {}", view.process);
  return view.device == kNoDevice ? process : fmt::format("{}, GPU {}", process, view.device);
}

std::vector<TraceView> views_of(const TraceEvents& events, const ViewRequest& request) {
  const auto all = all_views(events);
  std::vector<TraceView> views;
  for (const auto& [process, device] : all) {
    if (request.process && *request.process != process) {
      continue;
    }
    if (request.device && *request.device != device) {
      continue;
    }
    views.push_back({.process = process, .device = device});
  }
  if (views.empty()) {
    throw std::invalid_argument(fmt::format("{}: the trace does not have it; it has {}",
                                            request.process ? "--process" : "--device", list(all)));
  }
  return views;
}

TraceEvents view_events(const TraceEvents& events, const TraceView& view, const ViewRequest& request) {
  TraceEvents seen = events;
  std::optional<TimeInterval> window = request.window;
  if (!seen.session.foreign) {
    if (request.step_range.empty() && !window) {
      return seen;
    }
    if (!request.step_range.empty()) {
      throw std::invalid_argument("--step-range: a trace of decodelab has its steps");
    }
    for (Step& step : seen.steps) {
      const std::int64_t from_ns = step.start_ns - seen.session.window_start_ns;
      if (from_ns < window->start_ns || step.end_ns - seen.session.window_start_ns > window->end_ns) {
        step.excluded_reason = "outside of the window that was asked for";
      }
    }
    return seen;
  }
  keep_process(seen, view.process);
  mark_edges(seen);
  keep_device(seen, view.device);
  choose_thread(seen);
  close_ranges(seen);
  narrow_window(seen);
  if (window) {
    window->start_ns += seen.session.capture_start_ns;
    window->end_ns += seen.session.capture_start_ns;
  }
  find_steps(seen, request.step_range, window);
  return seen;
}

}  // namespace decodelab
