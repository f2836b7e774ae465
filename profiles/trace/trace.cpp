// Seals a collection: puts its rows in order and joins them.
#include "profiles/trace/trace.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "profiles/trace/join.h"

namespace decodelab {
namespace {

/// The key that rows are sorted by. Keys are sorted instead of rows, since rows are large.
struct Order {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t tie = 0;
  std::uint32_t row = 0;

  bool operator<(const Order& other) const {
    if (start_ns != other.start_ns) {
      return start_ns < other.start_ns;
    }
    if (end_ns != other.end_ns) {
      return end_ns > other.end_ns;  // The outer row comes first.
    }
    if (tie != other.tie) {
      return tie < other.tie;
    }
    return row < other.row;
  }
};

template <typename Row, typename OrderOf>
void sort_rows(std::vector<Row>& rows, OrderOf order_of) {
  std::vector<Order> orders;
  orders.reserve(rows.size());
  for (const Row& row : rows) {
    Order order = order_of(row);
    order.row = static_cast<std::uint32_t>(orders.size());
    orders.push_back(order);
  }
  if (std::is_sorted(orders.begin(), orders.end())) {
    return;
  }
  std::sort(orders.begin(), orders.end());
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const Order& order : orders) {
    sorted.push_back(std::move(rows[order.row]));
  }
  rows = std::move(sorted);
}

template <typename Row>
Order by_time(const Row& row) {
  return {.start_ns = row.start_ns, .end_ns = row.end_ns};
}

void sort_events(TraceEvents& events) {
  sort_rows(events.spans, [](const HostSpan& span) {
    const bool open = span.end_ns == 0;
    return Order{.start_ns = span.start_ns,
                 .end_ns = open ? std::numeric_limits<std::int64_t>::max() : span.end_ns,
                 .tie = static_cast<std::uint32_t>(span.kind)};
  });
  sort_rows(events.api_calls, by_time<ApiCall>);
  sort_rows(events.operations, by_time<DeviceOperation>);
  sort_rows(events.waits, by_time<Wait>);
  sort_rows(events.overheads, by_time<Overhead>);
  sort_rows(events.steps, by_time<Step>);
  sort_rows(events.counters, [](const CounterPoint& point) { return Order{.start_ns = point.time_ns}; });
}

void fill_device_bounds(TraceEvents& events) {
  std::unordered_map<std::int32_t, Step*> steps;
  for (Step& step : events.steps) {
    step.device_start_ns = 0;
    step.device_end_ns = 0;
    steps.emplace(step.index, &step);
  }
  for (const DeviceOperation& operation : events.operations) {
    const auto found = steps.find(operation.step);
    if (found == steps.end() || operation.start_ns <= 0 || operation.end_ns < operation.start_ns) {
      continue;
    }
    Step& step = *found->second;
    if (step.device_end_ns == 0) {
      step.device_start_ns = operation.start_ns;
    }
    step.device_end_ns = std::max(step.device_end_ns, operation.end_ns);
  }
}

void exclude_cut_steps(TraceEvents& events) {
  const TraceSession& session = events.session;
  const bool window_known = session.window_start_ns < session.window_end_ns;
  for (Step& step : events.steps) {
    if (!step.excluded_reason.empty()) {
      continue;
    }
    if (step.end_ns <= step.start_ns) {
      step.excluded_reason = "its end was not recorded";
    } else if (window_known && step.start_ns < session.window_start_ns) {
      step.excluded_reason = session.foreign ? "cut by the start of the capture" : "cut by the start of the window";
    } else if (window_known && std::max(step.end_ns, step.device_end_ns) > session.window_end_ns) {
      step.excluded_reason = session.foreign ? "cut by the end of the capture" : "cut by the end of the window";
    }
  }
}

}  // namespace

Trace seal(TraceEvents events) {
  Trace trace;
  sort_events(events);
  const std::vector<std::int64_t> spans_of_calls = place_on_host(events);
  join_operations(events, spans_of_calls);
  fill_lanes(events.operations);
  fill_device_bounds(events);
  exclude_cut_steps(events);
  for (std::size_t row = 0; row < events.operations.size(); ++row) {
    const std::int64_t api_row = events.operations[row].api_row;
    if (api_row != kNoRow) {
      trace.flows_.push_back({.api_row = api_row, .operation_row = static_cast<std::int64_t>(row)});
    }
  }
  trace.events_ = std::move(events);
  return trace;
}

}  // namespace decodelab
