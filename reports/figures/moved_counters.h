// Which counters of an arm differ most from the baseline's, in words that fit beside a plot.
#pragma once

#include <string>

#include "reports/statistics/summary.h"

namespace decodelab {

/// "allocations 588 -> 120, operators -31 %": at most two totals of a step, the largest change first; empty where none
/// moved or where a side was not counted. Counts of single operators and modelled work are left out: totals say it
/// shorter.
std::string moved_counters(const SummaryRow& baseline, const SummaryRow& row);

}  // namespace decodelab
