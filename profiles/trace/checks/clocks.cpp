// I11: the clocks of host and device agree. I12: steps agree with a timer that is not the tracer's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

constexpr double kTimerWarning = 0.02;
constexpr double kTimerFailure = 0.10;

/// Checks the reads of both clocks: that of the device lies between the two of the host, and the clocks do not drift
/// apart.
CheckResult check_brackets(const std::vector<ClockBracket>& brackets) {
  // This is computed in floating point: a clock of another epoch may lie anywhere.
  double narrowest_ns = std::numeric_limits<double>::infinity();
  double outside_ns = 0;
  double first_offset_ns = 0;
  double drift_ns = 0;
  for (const ClockBracket& bracket : brackets) {
    const auto before_ns = static_cast<double>(bracket.before_ns);
    const auto device_ns = static_cast<double>(bracket.device_ns);
    const auto after_ns = static_cast<double>(bracket.after_ns);
    narrowest_ns = std::min(narrowest_ns, after_ns - before_ns);
    outside_ns = std::max({outside_ns, before_ns - device_ns, device_ns - after_ns});
    const double offset_ns = device_ns - (before_ns + 0.5 * (after_ns - before_ns));
    if (&bracket == &brackets.front()) {
      first_offset_ns = offset_ns;
    }
    drift_ns = std::max(drift_ns, std::abs(offset_ns - first_offset_ns));
  }
  CheckResult result{.value = outside_ns, .limit = static_cast<double>(kClockToleranceNs)};
  result.evidence = fmt::format("brackets of {:.0f} ns or more, drift {:.0f} ns", narrowest_ns, drift_ns);
  if (outside_ns > static_cast<double>(kClockToleranceNs)) {
    result.status = CheckStatus::failed;
    result.evidence = fmt::format("the device's clock was {:.0f} ns outside of the host's bracket", outside_ns);
  } else if (narrowest_ns > static_cast<double>(kClockToleranceNs)) {
    result.status = CheckStatus::failed;
    result.value = narrowest_ns;
    result.evidence = fmt::format("no bracket is narrower than {:.0f} ns", narrowest_ns);
  } else if (drift_ns > static_cast<double>(kClockToleranceNs)) {
    result.status = CheckStatus::warned;
    result.value = drift_ns;
    result.evidence = fmt::format("the clocks drifted apart by {:.0f} ns within the window", drift_ns);
  }
  return result;
}

/// An operation that a wait may wait for, from the return of its launch.
struct Awaited {
  std::int64_t launched_ns = 0;
  std::int64_t end_ns = 0;
};

/// Finds how long after the return of a wait the operations that it waited for end, which is the converse of I4. A
/// positive time is impossible, so it shows by how much the device's clock is ahead.
class LateEnds {
 public:
  explicit LateEnds(const TraceEvents& events) : events_(events) {
    const bool one_device = events.session.devices.size() <= 1;
    for (const DeviceOperation& operation : events.operations) {
      if (operation.api_row == kNoRow || !has_times(operation)) {
        continue;
      }
      const ApiCall& call = events.api_calls[static_cast<std::size_t>(operation.api_row)];
      const Awaited awaited{.launched_ns = call.end_ns, .end_ns = operation.end_ns};
      streams_[{operation.process, operation.stream}].push_back(awaited);
      if (one_device) {
        processes_[operation.process].push_back(awaited);
      }
    }
    for (auto& [key, awaited] : streams_) {
      prepare(awaited);
    }
    for (auto& [key, awaited] : processes_) {
      prepare(awaited);
    }
    for (const Wait& wait : events_.waits) {
      add(wait);
    }
  }

  bool any() const { return any_; }
  std::int64_t latest_ns() const { return latest_ns_; }

 private:
  /// Sorts by launch, and sets each end to the latest end of all operations that were launched by then.
  static void prepare(std::vector<Awaited>& awaited) {
    std::sort(awaited.begin(), awaited.end(),
              [](const Awaited& a, const Awaited& b) { return a.launched_ns < b.launched_ns; });
    for (std::size_t i = 1; i < awaited.size(); ++i) {
      awaited[i].end_ns = std::max(awaited[i].end_ns, awaited[i - 1].end_ns);
    }
  }

  void add(const Wait& wait) {
    const std::vector<Awaited>* awaited = nullptr;
    if (wait.kind == WaitKind::stream) {
      const auto found = streams_.find({wait.process, wait.stream});
      if (found != streams_.end()) {
        awaited = &found->second;
      }
    } else if (wait.kind == WaitKind::context) {
      const auto found = processes_.find(wait.process);
      if (found != processes_.end()) {
        awaited = &found->second;
      }
    }
    if (awaited == nullptr || wait.start_ns <= 0 || wait.end_ns < wait.start_ns) {
      return;
    }
    const auto after =
        std::upper_bound(awaited->begin(), awaited->end(), wait.start_ns,
                         [](std::int64_t time, const Awaited& candidate) { return time < candidate.launched_ns; });
    if (after == awaited->begin()) {
      return;
    }
    const std::int64_t late_ns = (after - 1)->end_ns - wait.end_ns;
    latest_ns_ = any_ ? std::max(latest_ns_, late_ns) : late_ns;
    any_ = true;
  }

  const TraceEvents& events_;
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<Awaited>> streams_;
  std::map<std::int64_t, std::vector<Awaited>> processes_;
  bool any_ = false;
  std::int64_t latest_ns_ = 0;
};

}  // namespace

CheckResult check_clocks(const CheckInput& input) {
  const TraceEvents& events = input.events();
  const LateEnds late(events);
  if (events.session.clocks.empty() && !late.any()) {
    return not_applicable("neither reads of both clocks nor waits were recorded");
  }
  CheckResult result{.limit = static_cast<double>(kClockToleranceNs), .evidence = "the clocks were not read together"};
  if (!events.session.clocks.empty()) {
    result = check_brackets(events.session.clocks);
  }
  if (result.status == CheckStatus::failed || !late.any()) {
    return result;
  }
  if (late.latest_ns() > kClockToleranceNs) {
    return {.status = CheckStatus::failed,
            .value = static_cast<double>(late.latest_ns()),
            .limit = static_cast<double>(kClockToleranceNs),
            .evidence =
                fmt::format("an operation ends {} after the return of the wait for it", time_text(late.latest_ns()))};
  }
  result.evidence += fmt::format("; waits return {} or more after what they wait for", time_text(-late.latest_ns()));
  return result;
}

CheckResult check_timer(const CheckInput& input) {
  std::int64_t traced_ns = 0;
  std::int64_t device_ns = 0;
  std::int64_t timer_ns = 0;
  std::int64_t steps = 0;
  for (const Step& step : input.events().steps) {
    if (!counts(step) || step.timer_ns <= 0) {
      continue;
    }
    traced_ns += step.end_ns - step.start_ns;
    device_ns += step.device_end_ns - step.device_start_ns;
    timer_ns += step.timer_ns;
    ++steps;
  }
  if (steps == 0) {
    return not_applicable("no timer ran beside the tracer");
  }
  const auto relative = [&](std::int64_t ns) {
    return static_cast<double>(ns - timer_ns) / static_cast<double>(timer_ns);
  };
  // A device may be done sooner than the step, never later: its operations end before the step's token is read.
  const double off = std::max(std::abs(relative(traced_ns)), relative(device_ns));
  CheckResult result{.value = off, .limit = kTimerWarning};
  result.evidence = fmt::format("{} in the trace, {} by the timer ({:+.2f} %) over {}", time_text(traced_ns),
                                time_text(timer_ns), 100 * relative(traced_ns), counted(steps, "step"));
  if (relative(device_ns) > kTimerWarning) {
    result.evidence += fmt::format("; on the device {}", time_text(device_ns));
  }
  if (off > kTimerWarning) {
    result.status = CheckStatus::warned;
  }
  if (off > kTimerFailure) {
    result.status = CheckStatus::failed;
  }
  return result;
}

}  // namespace decodelab
