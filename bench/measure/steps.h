// How many steps of a cell are timed in each visit.
#pragma once

#include <cstdint>

namespace decodelab {

/// Steps after which costs that come now and then (a cache that grows by 8 tokens) have come once.
inline constexpr std::int64_t kPeriodSteps = 8;

/// Most timed steps of a visit.
inline constexpr std::int64_t kMaximumSteps = 64;

/// The flag of a row whose visits hold no whole period.
inline constexpr const char* kPeriodNotCoveredFlag = "period-not-covered";

struct StepsPlan {
  std::int64_t steps = 0;
  bool period_covered =
      false;  ///< Whether `steps` is a multiple of kPeriodSteps; else the row carries kPeriodNotCoveredFlag.
};

/// As many steps as fill 0.2 s, from 1 to kMaximumSteps; a whole number of periods wherever one fits in 2 s.
///
/// `slowest_step_ns` is the step of the slowest arm in the pilot: the number is fixed before the first block and equal
/// for all arms. Throws std::invalid_argument where it is not above 0.
StepsPlan plan_steps(std::int64_t slowest_step_ns);

}  // namespace decodelab
