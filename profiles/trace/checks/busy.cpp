// I5: streams run one operation after the other, except for branches of a graph. I7: a device is not busy for longer
// than the window.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"
#include "profiles/trace/device_time.h"

namespace decodelab {
namespace {

bool same_replay(const DeviceOperation& a, const DeviceOperation& b) {
  return a.graph_id != 0 && a.graph_id == b.graph_id && a.process == b.process && a.correlation == b.correlation;
}

}  // namespace

CheckResult check_stream_order(const CheckInput& input) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
  std::map<Key, const DeviceOperation*> last_to_end;
  NamedRows rows;
  std::int64_t branches = 0;
  std::int64_t seen = 0;
  for (const DeviceOperation& operation : input.events().operations) {
    if (!has_times(operation)) {
      continue;
    }
    ++seen;
    const DeviceOperation*& last = last_to_end[{operation.device, operation.context, operation.stream}];
    if (last != nullptr && operation.start_ns < last->end_ns) {
      if (same_replay(*last, operation)) {
        ++branches;
      } else {
        rows.add([&] {
          return fmt::format("{} {} {}", name_of(input.trace, last->name),
                             operation.end_ns <= last->end_ns ? "wholly holds" : "runs into",
                             name_of(input.trace, operation.name));
        });
      }
    }
    if (last == nullptr || operation.end_ns > last->end_ns) {
      last = &operation;
    }
  }
  if (seen == 0) {
    return not_applicable("no device operation was recorded");
  }
  CheckResult result{.value = static_cast<double>(rows.count()), .evidence = "no overlap in any stream"};
  if (branches > 0) {
    result.evidence += fmt::format(", but {} between branches of a graph", branches);
  }
  if (rows.count() > 0) {
    result.status = CheckStatus::warned;
    result.evidence = fmt::format("{} in one stream (programmatic launches do that): {}",
                                  counted(rows.count(), "overlap"), rows.text());
  }
  return result;
}

CheckResult check_busy_within_wall(const CheckInput& input) {
  const TraceEvents& events = input.events();
  const TraceSession& session = events.session;
  if (session.window_end_ns <= session.window_start_ns) {
    return not_applicable("the window of this trace is not known");
  }
  const double wall_ns = static_cast<double>(session.window_end_ns) - static_cast<double>(session.window_start_ns);
  std::set<std::int32_t> devices;
  for (const DeviceOperation& operation : events.operations) {
    devices.insert(operation.device);
  }
  if (devices.empty()) {
    return not_applicable("no device operation was recorded");
  }
  CheckResult result{.limit = wall_ns};
  for (const std::int32_t device : devices) {
    std::int64_t busy_ns = 0;
    for (const BusySegment& segment : busy_segments(events, device)) {
      // Operations that lie across the edges of a foreign capture count only inside the window.
      const std::int64_t from_ns = session.foreign ? session.window_start_ns : segment.start_ns;
      const std::int64_t until_ns = session.foreign ? session.window_end_ns : segment.end_ns;
      busy_ns += std::max<std::int64_t>(0, std::min(segment.end_ns, until_ns) - std::max(segment.start_ns, from_ns));
    }
    if (static_cast<double>(busy_ns) < result.value && !result.evidence.empty()) {
      continue;
    }
    result.value = static_cast<double>(busy_ns);
    result.evidence = fmt::format("device {} was busy for {} of {}", device, time_text(busy_ns),
                                  time_text(static_cast<std::int64_t>(wall_ns)));
  }
  if (result.value > result.limit) {
    result.status = CheckStatus::failed;
  }
  return result;
}

}  // namespace decodelab
