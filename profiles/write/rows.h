// What all formats share: names of kinds, times that can be drawn, and the bounds of a trace.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "profiles/trace/trace.h"

namespace decodelab {

inline constexpr std::array<const char*, 5> kSpanKindNames{"step", "layer", "stage", "operator", "span"};
inline constexpr std::array<const char*, 7> kApiKindNames{"launch",      "graph_launch", "copy", "set",
                                                          "synchronize", "allocate",     "other"};
inline constexpr std::array<const char*, 4> kOperationKindNames{"kernel", "memcpy", "memset", "graph"};
/// Names that kineto and nsys give to kinds of waits, indexed by WaitKind; 0 is none.
inline constexpr std::array<const char*, 5> kWaitNames{"", "Event Sync", "Stream Wait Event", "Stream Sync",
                                                       "Context Sync"};
inline constexpr std::array<const char*, 9> kOverheadNames{
    "Driver Compiler",       "Buffer Flush",        "Instrumentation",         "Resource",           "Module Loading",
    "Lazy Function Loading", "Command Buffer Full", "Activity Buffer Request", "Unified Memory Init"};

template <typename Enum, std::size_t N>
const char* name_of(const std::array<const char*, N>& names, Enum value) {
  const auto place = static_cast<std::size_t>(value);
  return place < N ? names[place] : "";
}

/// Returns the value of that name, or nothing.
template <typename Enum, std::size_t N>
std::optional<Enum> named(const std::array<const char*, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return std::nullopt;
  }
  return static_cast<Enum>(found - names.begin());
}

/// When the first row of a trace starts and the last one ends; zeros where it has none.
struct TraceBounds {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

template <typename Visit>
void for_each_time(const TraceEvents& events, Visit visit) {
  const auto all = [&](const auto& rows) {
    for (const auto& row : rows) {
      visit(row.start_ns, row.end_ns);
    }
  };
  all(events.spans);
  all(events.api_calls);
  all(events.operations);
  all(events.waits);
  all(events.overheads);
  all(events.steps);
  for (const CounterPoint& point : events.counters) {
    visit(point.time_ns, point.time_ns);
  }
}

inline TraceBounds bounds_of(const TraceEvents& events) {
  TraceBounds bounds{.start_ns = std::numeric_limits<std::int64_t>::max(),
                     .end_ns = std::numeric_limits<std::int64_t>::min()};
  for_each_time(events, [&](std::int64_t start, std::int64_t end) {
    bounds.start_ns = std::min(bounds.start_ns, start);
    bounds.end_ns = std::max({bounds.end_ns, start, end});
  });
  return bounds.start_ns > bounds.end_ns ? TraceBounds{} : bounds;
}

/// Returns the number of rows that become events of a file.
inline std::size_t event_count(const TraceEvents& events) {
  return events.spans.size() + events.api_calls.size() + events.operations.size() + events.waits.size() +
         events.overheads.size() + events.counters.size() + events.steps.size();
}

/// The latest time that is accepted: no clock shows more, and sums of times stay in 64 bits.
inline constexpr std::int64_t kLatestTime = std::int64_t{1} << 62;

/// Returns the end that a viewer is shown. A row without an end (a span that was still open) ends at `when_open`, and
/// no row ends before its start. Exporters write the row's own end beside it, and importers read that one.
inline std::int64_t shown_end(std::int64_t start_ns, std::int64_t end_ns, std::int64_t when_open) {
  if (end_ns == 0) {
    return std::max(start_ns, when_open);
  }
  return std::max(start_ns, end_ns);
}

}  // namespace decodelab
