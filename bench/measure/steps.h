// How many steps of a cell are timed in each visit.
#pragma once

#include <cstdint>

#include "reports/statistics/estimates.h"

namespace decodelab {

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
/// for all arms. `fewest` steps, up to kMaximumSteps, are timed however long they take. Throws std::invalid_argument
/// where the time is not above 0.
StepsPlan plan_steps(std::int64_t slowest_step_ns, std::int64_t fewest = 0);

/// Steps of a slice of an arm: as many as fill `slice_ns`, `fewest` at least (Worker::fewest_slice_steps()), at most
/// the visit's `steps`, which are one slice where `slice_ns` is 0.
///
/// An odd number, so that the first steps of slices, which follow another arm, fall on every residue of a period of 8.
std::int64_t plan_slice(std::int64_t steps, std::int64_t slowest_step_ns, std::int64_t slice_ns, std::int64_t fewest);

/// Steps that each visit needs, so that a row of the run has as many as kTailRule asks for.
std::int64_t tail_steps(std::int64_t launches, std::int64_t blocks);

}  // namespace decodelab
