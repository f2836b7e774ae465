// Two arms that need not have been measured side by side: of one run, paired; of two runs, with what that costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/statistics/estimates.h"
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
  /// 95 %, not adjusted for the number of cells: Student's t over launches where paired, Welch's t between the launches of two
  /// runs else, which does not cancel what the machine did between the two.
  std::optional<Interval> interval;
  std::string reason;  ///< Why there is no ratio; else empty.
};

/// A run, and the arm that is meant; without one, each of its arms is compared with the arm of the same name.
struct ComparedSide {
  const RunData* data = nullptr;
  std::string arm;
};

/// Every cell of the candidate that the baseline has too, in the candidate's order.
///
/// Throws std::invalid_argument, naming the arms that there are, for an arm that a run does not have; where one run stands on
/// both sides and the arms are not named, and where the sides have no cell in common.
std::vector<ComparedCell> compare_runs(const ComparedSide& baseline, const ComparedSide& candidate);

/// Stable facts that differ between the runs (machine, build, model), as words for a warning; empty where none does.
std::vector<std::string> differences_of(const RunRecord& a, const RunRecord& b);

/// Welch's interval for the difference of two means; none where a side has fewer than two values.
std::optional<Interval> welch_interval(std::span<const double> a, std::span<const double> b);

}  // namespace decodelab
