// Fixes the number of timed steps of a cell from the pilot of its slowest arm.
#include "bench/measure/steps.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/round_up.h"
#include "reports/statistics/summary.h"

namespace decodelab {
namespace {

/// Long compared with the resolution of the clock and of the scheduler.
constexpr std::int64_t kVisitNs = 200'000'000;
constexpr std::int64_t kContinuationVisitNs = 1'000'000'000;
constexpr std::int64_t kPeriodLimitNs = 2'000'000'000;  ///< A period that takes longer would make blocks too few.
static_assert(kMaximumSteps % kPeriodSteps == 0);

}  // namespace

StepsPlan plan_steps(std::int64_t slowest_step_ns, std::int64_t fewest) {
  if (slowest_step_ns <= 0) {
    throw std::invalid_argument(
        fmt::format("steps: the slowest step takes {} ns; expected more than 0.", slowest_step_ns));
  }
  const std::int64_t filling = (kVisitNs - 1) / slowest_step_ns + 1;  // Rounded up, without overflow.
  const std::int64_t steps = std::clamp<std::int64_t>(std::max(filling, fewest), 1, kMaximumSteps);
  if (slowest_step_ns > kPeriodLimitNs / kPeriodSteps && steps < kPeriodSteps) {
    return {.steps = steps, .period_covered = false};
  }
  const std::int64_t periods = (steps + kPeriodSteps - 1) / kPeriodSteps;
  return {.steps = periods * kPeriodSteps, .period_covered = true};
}

std::int64_t plan_whole_steps(Phase phase, std::int64_t slowest_step_ns, std::int64_t fewest) {
  const std::int64_t visit_ns = phase == Phase::continuation ? kContinuationVisitNs : kVisitNs;
  const std::int64_t filling = divided_up(visit_ns, std::max<std::int64_t>(slowest_step_ns, 1));
  return std::clamp<std::int64_t>(std::max(filling, fewest), 1, kMaximumSteps);
}

std::int64_t plan_slice(std::int64_t steps, std::int64_t slowest_step_ns, std::int64_t slice_ns, std::int64_t fewest) {
  if (slice_ns == 0) {
    return steps;
  }
  const std::int64_t filling = divided_up(slice_ns, std::max<std::int64_t>(slowest_step_ns, 1));
  return std::min(std::max(filling, fewest) | 1, steps);
}

std::int64_t tail_steps(std::int64_t launches, std::int64_t blocks) {
  constexpr std::int64_t kVisitsOfABlock = 2;
  return divided_up(kTailRule.steps, launches * blocks * kVisitsOfABlock);
}

}  // namespace decodelab
