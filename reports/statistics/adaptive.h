// Sweeps that are looked at while they grow: `sweep --adaptive`.
#pragma once

#include <optional>
#include <vector>

#include "reports/statistics/estimates.h"
#include "reports/statistics/verdict.h"
#include "reports/store/record.h"

namespace decodelab {

/// Whether the plan of the run says that launches are added until every contrast is decided.
bool is_adaptive(const RunRecord& run);

/// What a look says about one contrast; the interval is of logarithms, t(1 - level) each side (kIntervalWithLooks).
struct AdaptiveContrast {
  Decision decision;
  std::optional<Interval> interval;
};

/// Decides as adaptive_looks() says, where there are as many launches as one of its looks; else no contrast has a
/// verdict. `contrasts[j][i]` as in decide_family().
std::vector<AdaptiveContrast> decide_adaptive(const std::vector<std::vector<double>>& contrasts);

/// Whether a run with as many launches as a look needs no more: every contrast and composite has a verdict that is not
/// INCONCLUSIVE.
bool is_decided(RunData data);

}  // namespace decodelab
