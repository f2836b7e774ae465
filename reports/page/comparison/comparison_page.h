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

/// Collects everything that is reported about two sides. Throws as compare_runs() does.
RunComparison make_comparison(const ComparedSide& baseline, const ComparedSide& candidate);

/// Returns the result of the row in a word. For paired rows it is the verdict of their family, or why there is none.
/// Between runs, an interval on one side of 1 gives no more than `looks faster` or `looks slower`.
std::string comparison_reading(const ComparedCell& row);

/// Returns the columns Cell | Arm | Time ratio [95 %] | Speed-up | Launches | Reading; the notes say what differs
/// between the runs. `times` adds the times of both sides, which make the table too wide for a terminal.
Table comparison_page_table(const RunComparison& comparison, bool times = false);

/// Returns the columns Arm | Cells | Geometric mean of the time ratios | Lowest | Highest | Reading; the last says how
/// many cells have which reading.
Table comparison_overview_table(const RunComparison& comparison);

/// Returns the fields of machine, build, model, plan and engines that differ; a note names those that are equal.
Table comparison_differences_table(const RunComparison& comparison);
/// Returns the counters of a step that differ between the sides, in one row for all cells with the same values; no rows
/// where no counter differs.
Table comparison_counters_table(const RunComparison& comparison);
/// Returns a table for each cell in which both sides have a trace: stage, baseline, candidate, how much it moved, and
/// its share of the whole. The rows of the stages and of the residual are followed by the row of the whole step, to
/// which they add up in the digits shown; rows of device idleness, which are no part of the sum, follow. Where the
/// traces allow no comparison, the table has only a note that says why.
std::vector<Table> comparison_moves_tables(const RunComparison& comparison);
/// Returns the cells and arms that only one of two runs has; no rows where there are none.
Table comparison_one_sided_table(const RunComparison& comparison);

/// These return the comparison as one object with `schema_version, baseline, candidate, differences[], rows[]`, as JSON
/// lines with a line for each row, and as CSV with a record for each row. Where both sides have a trace, a row's
/// `moved` lists stages in ns per step.
std::string comparison_to_json(const RunComparison& comparison);
std::string comparison_to_jsonl(const RunComparison& comparison);
std::string comparison_to_csv(const RunComparison& comparison);

}  // namespace decodelab
