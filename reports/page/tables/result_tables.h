// The tables of a run: times as users of TGI's benchmark know them, and the comparison of arms.
#pragma once

#include <vector>

#include "base/table.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// One table per arm, length and setting: Step | Batch Size | Average | Lowest | Highest | p50 | p90 | p99.
///
/// The steps are Prefill, Decode (token) and, where phase generate was run, Decode (total), a whole completion. Notes
/// say what became of rows without times, and those of the last table why percentiles are blank.
std::vector<Table> latency_tables(const RunSummary& summary);

/// How arms are named where their labels would make a table wider than kTableWidth.
enum class ArmLabels { short_where_wide, full };

/// One table per setting (dtype, device, threads, scope): cell, arm, median, time ratio to the baseline with its
/// interval, smallest detectable effect, peak memory, status.
///
/// Letters that stand for arms are explained in the notes.
std::vector<Table> comparison_tables(const RunSummary& summary, ArmLabels labels = ArmLabels::short_where_wide);

/// All cells of each arm in one number, with its verdict; no rows where the run has one cell or no baseline.
Table composite_table(const RunSummary& summary);

/// The switches of an ablation, the largest effect on the time first, with interval and verdict: over all cells, or in
/// the one cell of a run. No rows where the run is no ablation or nothing was compared.
Table effect_table(const RunSummary& summary);

/// Planned, ok and excluded rows of every arm, with the reasons: nothing that was asked for is silently absent.
Table ledger_table(const RunSummary& summary);

}  // namespace decodelab
