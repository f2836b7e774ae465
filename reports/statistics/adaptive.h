// Decides on sweeps that are evaluated while launches are still being added: `sweep --adaptive`.
#pragma once

#include <optional>
#include <vector>

#include "reports/statistics/estimates.h"
#include "reports/statistics/verdict.h"
#include "reports/store/record.h"

namespace decodelab {

/// Whether the plan of the run says that launches are added until every contrast is decided.
bool is_adaptive(const RunRecord& run);

/// The result of a look for one contrast. The interval is one of logarithms, with Student's t(1 - level) on each side
/// (kIntervalWithLooks).
struct AdaptiveContrast {
  Decision decision;
  std::optional<Interval> interval;
};

/// Decides every contrast by adaptive_looks(), if the number of launches is that of one of its looks; otherwise no
/// contrast has a verdict. `contrasts[j][i]` means the same as in decide_family().
std::vector<AdaptiveContrast> decide_adaptive(const std::vector<std::vector<double>>& contrasts);

/// Returns whether a run that has as many launches as a look needs no further ones: every contrast and composite has a
/// verdict that is not INCONCLUSIVE.
bool is_decided(RunData data);

}  // namespace decodelab
