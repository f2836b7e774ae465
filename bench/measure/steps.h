// How many steps of a cell are timed in each visit.
#pragma once

#include <cstdint>

#include "base/phase.h"
#include "reports/statistics/estimates.h"

namespace decodelab {

/// Most timed steps of a visit.
inline constexpr std::int64_t kMaximumSteps = 64;

struct StepsPlan {
  std::int64_t steps = 0;
  /// Whether `steps` is a multiple of kPeriodSteps; else the row carries kPeriodNotCoveredFlag.
  bool period_covered = false;
};

/// Returns as many steps as fill 0.2 s, from 1 to kMaximumSteps; a whole number of periods wherever one fits in 2 s.
///
/// `slowest_step_ns` is the step time of the slowest arm in the pilot: the number is fixed before the first block and
/// equal for all arms. `fewest` steps, up to kMaximumSteps, are timed however long they take. Throws
/// std::invalid_argument where the time is not above 0.
StepsPlan plan_steps(std::int64_t slowest_step_ns, std::int64_t fewest = 0);

/// Returns as many steps as fill a visit of a phase whose steps are whole by themselves and know no period: 0.2 s of
/// phase batching, where each serves requests of all lengths; 1 s of phase continue, where each is many decode steps
/// and only the mean of several is steady. Otherwise as plan_steps().
std::int64_t plan_whole_steps(Phase phase, std::int64_t slowest_step_ns, std::int64_t fewest = 0);

/// Returns the steps of one slice: as many as fill `slice_ns`, at least `fewest` (Worker::fewest_slice_steps()) and at
/// most the visit's `steps`. Where `slice_ns` is 0, all `steps` are one slice.
///
/// A slice shorter than the visit has an odd number of steps, so that the first steps of slices, which follow another
/// arm, fall on every residue of a period of 8.
std::int64_t plan_slice(std::int64_t steps, std::int64_t slowest_step_ns, std::int64_t slice_ns, std::int64_t fewest);

/// Returns the steps that each visit needs for a row of the run to have as many as kTailRule asks for.
std::int64_t tail_steps(std::int64_t launches, std::int64_t blocks);

}  // namespace decodelab
