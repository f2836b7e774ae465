// Computes the reach of a trace in floating point, since integers might overflow.
#include <algorithm>
#include <cmath>
#include <limits>

#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

constexpr double kMostAdded = 0x1p61;

class Reach {
 public:
  void add(std::int64_t time_ns) {
    if (time_ns == 0) {
      return;
    }
    first_ = std::min(first_, time_ns);
    last_ = std::max(last_, time_ns);
  }

  template <typename Rows>
  void add_all(const Rows& rows) {
    for (const auto& row : rows) {
      add(row.start_ns);
      add(row.end_ns);
    }
    rows_ += static_cast<std::int64_t>(rows.size());
  }

  void add_amount(std::int64_t amount) {
    largest_amount_ = std::max(largest_amount_, std::abs(static_cast<double>(amount)));
  }

  TraceReach result() const {
    const double span = first_ > last_ ? 0 : static_cast<double>(last_) - static_cast<double>(first_);
    return {.largest = std::max(span, largest_amount_), .rows = rows_};
  }

 private:
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ = std::numeric_limits<std::int64_t>::min();
  double largest_amount_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace

bool TraceReach::adds_up() const { return largest * static_cast<double>(rows + 1) < kMostAdded; }

TraceReach reach_of(const TraceEvents& events) {
  Reach reach;
  reach.add_all(events.spans);
  reach.add_all(events.api_calls);
  reach.add_all(events.operations);
  reach.add_all(events.waits);
  reach.add_all(events.overheads);
  reach.add_all(events.steps);
  for (const CounterPoint& point : events.counters) {
    reach.add(point.time_ns);
  }
  for (const Step& step : events.steps) {
    for (const std::int64_t amount : {step.timer_ns, step.launches, step.graph_launches}) {
      reach.add_amount(amount);
    }
  }
  for (const DeviceOperation& operation : events.operations) {
    reach.add_amount(operation.bytes);
  }
  for (const HostSpan& span : events.spans) {
    for (const std::int64_t amount : {span.allocations, span.allocated_bytes, span.expected_bytes}) {
      reach.add_amount(amount);
    }
  }
  return reach.result();
}

}  // namespace decodelab
