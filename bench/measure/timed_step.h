// The clock around one step: all that the harness adds to what it times.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/runtime.h"

namespace decodelab {

/// Runs `step` and returns the nanoseconds until its work on `device` is done. A `slow_ns` above 0 adds a wait of that
/// length (kSlowPrefix).
template <typename Step>
std::int64_t timed_ns(Step&& step, const std::string& device, std::int64_t slow_ns) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  step();
  synchronize(device);
  if (slow_ns > 0) {
    const auto end = Clock::now() + std::chrono::nanoseconds(slow_ns);
    while (Clock::now() < end) {
    }
  }
  return std::chrono::nanoseconds(Clock::now() - start).count();
}

}  // namespace decodelab
