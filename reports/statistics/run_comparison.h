// Compares two arms that need not have been measured side by side: arms of one run in pairs, arms of two runs without,
// so that changes of the machine between the runs are in the ratio.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/statistics/estimates.h"
#include "reports/statistics/stage_moves.h"
#include "reports/statistics/verdict.h"
#include "reports/store/record.h"

namespace decodelab {

/// One cell that both sides have.
struct ComparedCell {
  CellRecord cell;
  std::string arm;  ///< Of the candidate.
  std::string baseline_arm;
  bool paired = false;  ///< Measured in the same blocks.
  std::int64_t launches = 0;
  std::int64_t baseline_launches = 0;
  std::optional<double> time_ratio;  ///< Candidate over baseline, below 1 is faster.
  /// 95 % interval, not adjusted for the number of cells: Student's t over launches where paired, else Welch's t
  /// between the launches of the two runs, which does not cancel changes of the machine between them.
  std::optional<Interval> interval;
  std::string reason;  ///< Why there is no ratio; else empty.
  /// Made by the rules of a run, within the family of all cells that are compared; has no verdict where the two were
  /// not paired.
  Decision decision{};
  std::optional<double> baseline_ns{};  ///< Mean over launches of the mean visit statistic.
  std::optional<double> candidate_ns{};
  Counters baseline_counters{};
  Counters counters{};
  std::int64_t baseline_cell_id = 0;
  std::optional<StageMoves> moves{};  ///< Where both sides have a trace.
};

/// A cell of an arm that only one of two runs has.
struct OneSidedRow {
  bool in_baseline = false;
  CellRecord cell;
  std::string arm;
};

/// A run, and the arm that is meant; without one, each of its arms is compared with the arm of the same name.
struct ComparedSide {
  const RunData* data = nullptr;
  std::string arm;
};

/// Compares every cell of the candidate that the baseline has too, in the candidate's order. A row that is incorrect,
/// not engaged or otherwise not ok has a reason instead of a ratio.
///
/// Throws std::invalid_argument for an arm that a run does not have, with a list of its arms; where one run stands on
/// both sides and the arms are not named, and where the sides have no cell in common.
std::vector<ComparedCell> compare_runs(const ComparedSide& baseline, const ComparedSide& candidate);

/// Returns the cells of the compared arms that only one side has, and arms that only one side has, in planned order.
/// Rows of two arms of one run are never one-sided.
std::vector<OneSidedRow> one_sided_rows(const ComparedSide& baseline, const ComparedSide& candidate);

/// Returns the stable facts that differ between the runs (machine, build, model), as words for a warning; empty where
/// none does.
std::vector<std::string> differences_of(const RunRecord& a, const RunRecord& b);

/// Returns Welch's interval for the difference of two means; none where a side has fewer than two values.
std::optional<Interval> welch_interval(std::span<const double> a, std::span<const double> b);

}  // namespace decodelab
