// Fixes the number of timed steps of a cell from the pilot of its slowest arm.
#include "bench/measure/steps.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::int64_t kVisitNs = 200'000'000;          ///< Long beside the clock's and the scheduler's grain.
constexpr std::int64_t kPeriodLimitNs = 2'000'000'000;  ///< A period that takes longer would make blocks too few.
static_assert(kMaximumSteps % kPeriodSteps == 0);

}  // namespace

StepsPlan plan_steps(std::int64_t slowest_step_ns) {
  if (slowest_step_ns <= 0) {
    throw std::invalid_argument(
        fmt::format("steps: the slowest step takes {} ns; expected more than 0.", slowest_step_ns));
  }
  const std::int64_t filling = (kVisitNs - 1) / slowest_step_ns + 1;  // Rounded up, without overflow.
  const std::int64_t steps = std::clamp<std::int64_t>(filling, 1, kMaximumSteps);
  if (slowest_step_ns > kPeriodLimitNs / kPeriodSteps) {
    return {.steps = steps, .period_covered = false};
  }
  const std::int64_t periods = (steps + kPeriodSteps - 1) / kPeriodSteps;
  return {.steps = periods * kPeriodSteps, .period_covered = true};
}

}  // namespace decodelab
