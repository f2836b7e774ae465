// Which counters of an arm differ most from the baseline's, in words that fit beside a plot.
#pragma once

#include <string>

#include "reports/statistics/summary.h"

namespace decodelab {

/// Returns "allocations 588 -> 120, operators 900 -> 621" (with an arrow character): at most two totals per step, the
/// largest change first; empty where none moved by more than 2 % or where a side was not counted. Counts of single
/// operators and modelled work are left out: totals say the same in fewer words.
std::string moved_counters(const SummaryRow& baseline, const SummaryRow& row);

}  // namespace decodelab
