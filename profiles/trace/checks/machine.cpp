// I13: what tracing itself cost. I17: bytes against bandwidth. I18: the device's clock within the window.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

constexpr double kNotableSlowDown = 1.05;
constexpr double kContaminatingSlowDown = 1.15;
/// Measured bandwidth is an average; a kernel may do a little better.
constexpr double kMostBandwidthShare = 1.05;
constexpr double kLeastClockShare = 0.95;
constexpr const char* kClockSeries = "sm_clock_mhz";
constexpr const char* kThrottleSeries = "throttle_reasons";

double best_bandwidth(const TraceEvents& events) {
  double best = 0;
  for (const TraceDevice& device : events.session.devices) {
    best = std::max({best, device.measured_bytes_per_second, device.nominal_bytes_per_second});
  }
  return best;
}

}  // namespace

CheckResult check_perturbation(const CheckInput& input) {
  const Perturbation& slow_down = input.events().session.perturbation;
  if (slow_down.ratio <= 0) {
    return not_applicable("steps were not timed without tracing");
  }
  CheckResult result{.value = slow_down.ratio, .limit = kNotableSlowDown};
  result.evidence = fmt::format("traced steps take {:.3f} times as long ({:.3f} to {:.3f}, {})", slow_down.ratio,
                                slow_down.low, slow_down.high, counted(slow_down.pairs, "pair"));
  if (slow_down.ratio > kNotableSlowDown) {
    result.status = CheckStatus::warned;
  }
  // A noisy machine alone must not say that tracing spoilt the trace.
  if (slow_down.low > kContaminatingSlowDown) {
    result.status = CheckStatus::failed;
    result.limit = kContaminatingSlowDown;
  }
  return result;
}

CheckResult check_bandwidth(const CheckInput& input) {
  const double bandwidth = best_bandwidth(input.events());
  if (bandwidth <= 0) {
    return not_applicable("the bandwidth of the device is not known");
  }
  CheckResult result{.limit = kMostBandwidthShare};
  NamedRows rows;
  std::int64_t stages = 0;
  for (const StageCost& stage : input.account.stages) {
    if (stage.expected_bytes <= 0 || stage.device_ns <= 0) {
      continue;
    }
    ++stages;
    const double share =
        static_cast<double>(stage.expected_bytes) / (static_cast<double>(stage.device_ns) * 1e-9) / bandwidth;
    result.value = std::max(result.value, share);
    if (share <= kMostBandwidthShare) {
      continue;
    }
    const char* name = kStageNames[std::min(static_cast<std::size_t>(stage.stage), kStageNames.size() - 1)];
    rows.add([&] { return fmt::format("{} at {:.0f} %", name, 100 * share); });
  }
  if (stages == 0) {
    return not_applicable("no stage has modelled bytes and device time");
  }
  result.evidence = fmt::format("at most {:.0f} % of the bandwidth", 100 * result.value);
  if (rows.count() > 0) {
    result.status = CheckStatus::warned;
    result.evidence =
        "more bytes than the device can move, so the model is wrong or a cache holds them: " + rows.text();
  }
  return result;
}

CheckResult check_steady_clock(const CheckInput& input) {
  const TraceEvents& events = input.events();
  double lowest = std::numeric_limits<double>::infinity();
  double highest = 0;
  bool throttled = false;
  for (const CounterPoint& point : events.counters) {
    const std::string name = name_of(input.trace, point.series);
    if (name == kThrottleSeries && point.value != 0) {
      throttled = true;
    }
    if (name != kClockSeries) {
      continue;
    }
    lowest = std::min(lowest, point.value);
    highest = std::max(highest, point.value);
  }
  if (highest <= 0) {
    return not_applicable("the device's clock was not sampled");
  }
  CheckResult result{.value = lowest / highest, .limit = kLeastClockShare};
  result.evidence = fmt::format("{:.0f} to {:.0f} MHz{}", lowest, highest, throttled ? ", throttled" : "");
  if (throttled || result.value < kLeastClockShare) {
    result.status = CheckStatus::warned;
  }
  return result;
}

}  // namespace decodelab
