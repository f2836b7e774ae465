// The tables of a run: times as users of TGI's benchmark know them, and the comparison of arms.
#pragma once

#include <vector>

#include "base/table.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// Returns one table per arm, length and setting: Step | Batch Size | Average | Lowest | Highest | p50 | p90 | p99.
///
/// The steps are Prefill, Decode (token) and, where phase generate was run, Decode (total), a whole completion. The
/// notes say what happened to rows without times; those of the last table also say why percentiles are blank.
std::vector<Table> latency_tables(const RunSummary& summary);

/// How arms are named where their labels would make a table wider than kTableWidth.
enum class ArmLabels { short_where_wide, full };

/// Returns one table per setting (dtype, device, threads, scope): cell, arm, median, time ratio to the baseline with
/// its interval, smallest detectable effect, peak memory, status.
///
/// Letters that stand for arms are explained in the notes.
std::vector<Table> comparison_tables(const RunSummary& summary, ArmLabels labels = ArmLabels::short_where_wide);

/// Returns, for each arm, one number over all cells, with its verdict; no rows where the run has one cell or no
/// baseline.
Table composite_table(const RunSummary& summary);

/// Returns the switches of an ablation, the largest effect on the time first, with interval and verdict, over all cells
/// or, where the run has one cell, in that cell. No rows where the run is no ablation or nothing was compared.
Table effect_table(const RunSummary& summary);

/// Returns how many rows of every arm were planned, ok and excluded, with the reasons, so that nothing that was asked
/// for is silently absent.
Table ledger_table(const RunSummary& summary);

}  // namespace decodelab
