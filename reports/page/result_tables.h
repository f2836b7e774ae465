// The tables of a run: times as users of TGI's benchmark know them, and the comparison of arms.
#pragma once

#include <vector>

#include "reports/page/table.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// One table per arm, length and setting: Step | Batch Size | Average | Lowest | Highest | p50 | p90 | p99.
///
/// The steps are Prefill, Decode (token) and, where phase generate was run, Decode (total), a whole completion. Notes say why a
/// percentile is blank and what became of rows without times.
std::vector<Table> latency_tables(const RunSummary& summary);

/// One table per setting (dtype, device, threads, scope): cell, arm, median, time ratio to the baseline with its interval,
/// smallest detectable effect, peak memory, status.
///
/// Where labels of arms would make it wider than kTableWidth, letters stand for them and the notes say for which.
std::vector<Table> comparison_tables(const RunSummary& summary);

/// Planned, ok and excluded rows of every arm, with the reasons: nothing that was asked for is silently absent.
Table ledger_table(const RunSummary& summary);

}  // namespace decodelab
