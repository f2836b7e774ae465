// The same run with another arm as the one that all ratios are relative to.
#pragma once

#include <string>

#include "reports/store/record.h"

namespace decodelab {

/// Returns the run with `label` as its only baseline; summarize() then decides its family of contrasts anew. Every arm
/// was visited in the same blocks, so such ratios are paired like the planned ones.
///
/// Unless `label` is the planned baseline, removes `ablate` from the plan, since "with the switch" and "without" mean
/// nothing against another baseline. Throws std::invalid_argument, which lists the run's arms, for an arm that the run
/// does not have, and for a roofline.
RunData with_baseline(RunData data, const std::string& label);

}  // namespace decodelab
