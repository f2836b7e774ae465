// Did the optimizations of an arm really run? Their counters say so.
#pragma once

#include <optional>
#include <string>

#include "bench/plan/arm.h"
#include "reports/store/record.h"

namespace decodelab {

struct Engagement {
  /// Empty where no variant of the arm expects anything of such steps: nothing proves or disproves it.
  std::optional<bool> engaged;
  std::string missing;  ///< Where false: the first variant whose counter is wrong, with both values, in one sentence.
};

/// Holds the counters against what each variant of the arm expects.
Engagement check_engagement(const Arm& arm, const CountedSteps& counted, const Counters& counters);

}  // namespace decodelab
