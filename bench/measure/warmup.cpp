// Decides from step times alone whether a cell has warmed up.
#include "bench/measure/warmup.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::size_t kHalf = 4;

struct Half {
  double median = 0;
  double gap = 0;  ///< Between the two steps about the median: how much steps differ without a trend.
};

Half describe(std::array<std::int64_t, kHalf> steps) {
  std::sort(steps.begin(), steps.end());
  const auto low = static_cast<double>(steps[1]);
  const auto high = static_cast<double>(steps[2]);
  return {.median = 0.5 * (low + high), .gap = high - low};
}

}  // namespace

std::int64_t expected_warmup_steps(std::int64_t step_ns) {
  if (step_ns > kWarmupSlowStepNs) {
    return 1;
  }
  return std::clamp(kWarmupMinimumNs / std::max<std::int64_t>(step_ns, 1), kWarmupWindow, kWarmupMaximumSteps);
}

void Warmup::add(std::int64_t step_ns) {
  if (step_ns < 0) {
    throw std::invalid_argument(fmt::format("warm-up: a step took {} ns; expected at least 0.", step_ns));
  }
  slow_ = slow_ || (steps_ == 0 && step_ns > kWarmupSlowStepNs);
  last_[static_cast<std::size_t>(steps_ % kWarmupWindow)] = step_ns;
  ++steps_;
  total_ns_ += step_ns;
}

bool Warmup::quiet() const {
  if (slow_) {
    return true;
  }
  if (steps_ < kWarmupWindow) {
    return false;
  }
  std::array<std::int64_t, kHalf> earlier{};
  std::array<std::int64_t, kHalf> later{};
  for (std::size_t i = 0; i < kHalf; ++i) {
    const std::size_t oldest = static_cast<std::size_t>(steps_ % kWarmupWindow) + i;
    earlier[i] = last_[oldest % kWarmupWindow];
    later[i] = last_[(oldest + kHalf) % kWarmupWindow];
  }
  const Half before = describe(earlier);
  const Half after = describe(later);
  return std::abs(after.median - before.median) < std::max(kWarmupQuietShare * before.median, before.gap + after.gap);
}

bool Warmup::done() const {
  return steps_ >= kWarmupMaximumSteps || (steps_ >= kWarmupWindow && total_ns_ >= kWarmupMaximumNs) ||
         (steps_ > 0 && total_ns_ >= kWarmupMinimumNs && quiet());
}

}  // namespace decodelab
