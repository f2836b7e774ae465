// A comparison of two runs, or of two arms of one, as tables and as data.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/run_comparison.h"

namespace decodelab {

struct RunComparison {
  RunRecord baseline;
  RunRecord candidate;
  std::vector<ComparedCell> rows;
  std::vector<OneSidedRow> one_sided{};
  std::vector<ArmRecord> baseline_arms{};
  std::vector<ArmRecord> candidate_arms{};

  bool is_one_run() const { return baseline.uuid == candidate.uuid; }
};

/// Everything that is told of two sides. Throws as compare_runs() does.
RunComparison make_comparison(const ComparedSide& baseline, const ComparedSide& candidate);

/// What the row says in a word. Paired rows have the verdict of their family, or why there is none; between runs an
/// interval that lies on one side of 1 only `looks faster` or `looks slower`.
std::string comparison_reading(const ComparedCell& row);

/// Cell | Arm | Time ratio [95 %] | Speed-up | Launches | Reading; what differs between the runs stands in the notes.
/// `times` adds the times of both sides, which make the table too wide for a terminal.
Table comparison_page_table(const RunComparison& comparison, bool times = false);

/// Arm | Cells | Geometric mean of the time ratios | Lowest | Highest | Reading, with how many cells have which.
Table comparison_overview_table(const RunComparison& comparison);

/// Fields of machine, build, model, plan and engines that differ; a note names those that are equal.
Table comparison_differences_table(const RunComparison& comparison);
/// Counters of a step that are not the same on both sides, once for all cells with the same values; no rows where none
/// moved.
Table comparison_counters_table(const RunComparison& comparison);
/// For each cell in which both sides have a trace: Stage | Baseline | Candidate | Moved | Share. The last row is the
/// whole step, and the moves above it, the residual among them, add up to it in the digits shown. Refusals are a table
/// of notes alone.
std::vector<Table> comparison_moves_tables(const RunComparison& comparison);
/// Cells and arms that only one of two runs has; no rows where there are none.
Table comparison_one_sided_table(const RunComparison& comparison);

/// One object with `schema_version, baseline, candidate, differences[], rows[]`; a line for each row; a record for each
/// row. A row's `moved` lists stages in ns of a step where both sides have a trace.
std::string comparison_to_json(const RunComparison& comparison);
std::string comparison_to_jsonl(const RunComparison& comparison);
std::string comparison_to_csv(const RunComparison& comparison);

}  // namespace decodelab
