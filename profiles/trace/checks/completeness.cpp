// I8: the engine counts its launches and replays without the tool, and the trace must hold as many.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"
#include "profiles/trace/join.h"
#include "profiles/trace/launch_set.h"

namespace decodelab {
namespace {

struct Recorded {
  std::int64_t launches = 0;
  std::int64_t replays = 0;
  std::int64_t calls = 0;  ///< Calls that launch something, whether or not the operation was recorded.
};

bool is_replay(const DeviceOperation& operation) {
  return operation.graph_id != 0 || operation.kind == DeviceOperationKind::graph;
}

std::unordered_map<std::int32_t, Recorded> recorded_by_step(const TraceEvents& events) {
  std::unordered_map<std::int32_t, Recorded> steps;
  LaunchSet replays;
  for (const DeviceOperation& operation : events.operations) {
    Recorded& step = steps[operation.step];
    if (!is_replay(operation)) {
      ++step.launches;
    } else if (replays.insert(operation.process, operation.correlation)) {
      ++step.replays;
    }
  }
  for (const ApiCall& call : events.api_calls) {
    const bool launches = call.kind == ApiKind::launch || call.kind == ApiKind::graph_launch ||
                          call.kind == ApiKind::copy || call.kind == ApiKind::set;
    const std::int64_t row = launches ? step_row_at(events.steps, call.start_ns) : kNoRow;
    if (row != kNoRow) {
      ++steps[events.steps[static_cast<std::size_t>(row)].index].calls;
    }
  }
  return steps;
}

/// Counts launches that were recorded but belong to no call, and so to no step: those of tier 1, or those that I3
/// reports.
MissingLaunches launches_without_step(const TraceEvents& events) {
  MissingLaunches strays;
  LaunchSet replays;
  for (const DeviceOperation& operation : events.operations) {
    if (operation.step != kNoStep || operation.api_row != kNoRow) {
      continue;
    }
    if (!is_replay(operation)) {
      ++strays.launches;
    } else if (replays.insert(operation.process, operation.correlation)) {
      ++strays.replays;
    }
  }
  return strays;
}

}  // namespace

std::vector<MissingLaunches> missing_launches(const TraceEvents& events) {
  std::vector<MissingLaunches> missing(events.steps.size());
  if (!events.session.launches_counted) {
    return missing;
  }
  std::unordered_map<std::int32_t, Recorded> steps = recorded_by_step(events);
  const bool steps_known = events.operations.empty() || steps.size() > steps.count(kNoStep);
  for (std::size_t i = 0; i < events.steps.size(); ++i) {
    const Step& step = events.steps[i];
    const Recorded recorded = steps[step.index];
    const bool nothing_recorded = recorded.launches + recorded.replays + recorded.calls == 0;
    if (!counts(step) || (nothing_recorded && steps_known)) {
      continue;  // Check I9 reports empty steps.
    }
    const auto compare = [&](std::int64_t expected, std::int64_t found, std::int64_t& fewer) {
      if (expected < 0) {
        return;
      }
      fewer = std::max<std::int64_t>(0, expected - found);
      missing[i].too_many += std::max<std::int64_t>(0, found - expected);
    };
    compare(step.launches, recorded.launches, missing[i].launches);
    compare(step.graph_launches, recorded.replays, missing[i].replays);
  }
  return missing;
}

CheckResult check_launch_counts(const CheckInput& input) {
  const TraceEvents& events = input.events();
  if (!events.session.launches_counted) {
    return not_applicable("nobody counted the launches of this engine");
  }
  const std::vector<MissingLaunches> missing = missing_launches(events);
  NamedRows rows;
  MissingLaunches sum;
  std::int64_t counted_launches = 0;
  std::int64_t counted_replays = 0;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const Step& step = events.steps[i];
    if (!counts(step)) {
      continue;
    }
    counted_launches += std::max<std::int64_t>(0, step.launches);
    counted_replays += std::max<std::int64_t>(0, step.graph_launches);
    if (!missing[i].any()) {
      continue;
    }
    sum.launches += missing[i].launches;
    sum.replays += missing[i].replays;
    sum.too_many += missing[i].too_many;
    rows.add([&] { return fmt::format("step {}", step.index); });
  }
  const MissingLaunches strays = launches_without_step(events);
  const std::int64_t lost_launches = std::max<std::int64_t>(0, sum.launches - strays.launches);
  const std::int64_t lost_replays = std::max<std::int64_t>(0, sum.replays - strays.replays);
  CheckResult result{.value = static_cast<double>(lost_launches + lost_replays + sum.too_many)};
  result.evidence = fmt::format("{} of {} graph replays and {} of {} launches recorded", counted_replays - lost_replays,
                                counted_replays, counted_launches - lost_launches, counted_launches);
  if (strays.any()) {
    result.evidence += fmt::format(", {} of them in no step", strays.launches + strays.replays);
  }
  if (result.value == 0) {
    return result;
  }
  result.status = CheckStatus::failed;
  if (sum.too_many > 0) {
    result.evidence += fmt::format("; {} more than were counted", sum.too_many);
  }
  result.evidence += ": " + rows.text();
  return result;
}

}  // namespace decodelab
