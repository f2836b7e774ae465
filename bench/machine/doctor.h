// What on this machine disturbs a measurement: settings and counters of the kernel, read and judged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace decodelab {

/// One line of a doctor's report.
struct Finding {
  std::string name;    ///< governor, load, timer, ...
  std::string value;   ///< As people read it; "not visible" where the kernel does not tell.
  std::string advice;  ///< What to do about it; empty where it is fine or cannot be known.
};

/// Reads /proc and /sys below `root` ("/" but in tests): cores and affinity, governor, boost, SMT, load, throttling,
/// quota of the control group, huge pages, memory. Never throws for what is absent.
std::vector<Finding> examine_system(const std::filesystem::path& root);

/// The time that reading the steady clock takes, and the smallest difference seen between two readings.
struct TimerCost {
  double call_ns = 0;
  std::int64_t resolution_ns = 0;
};
TimerCost measure_timer();

/// Events of thermal throttling of all cores since boot; none where the kernel does not count them.
std::optional<std::int64_t> throttle_events(const std::filesystem::path& root);

}  // namespace decodelab
