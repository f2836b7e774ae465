// Did the optimizations of an arm really run? Their counters say so.
#pragma once

#include <optional>
#include <string>

#include "bench/plan/arm.h"
#include "reports/store/record.h"

namespace decodelab {

struct Engagement {
  /// Whether the counters are as expected; empty where no variant of the arm expects anything of such steps.
  std::optional<bool> engaged;
  std::string missing;  ///< Where false: the first variant whose counter is wrong, with both values, in one sentence.
};

/// Compares the counters of the counted steps with what each variant of the arm expects of them.
Engagement check_engagement(const Arm& arm, const CountedSteps& counted, const Counters& counters);

}  // namespace decodelab
