// Effects of arms over several cells at once, and against arms that are not the baseline.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/statistics/estimates.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// Logarithms of time ratios, by launch.
using LaunchLogs = std::map<std::int64_t, double>;

/// Returns `a - b` for the launches that both have: the contrast between two arms, from the contrast of each to the
/// baseline.
LaunchLogs difference(const LaunchLogs& a, const LaunchLogs& b);

/// exp of the mean, with the 95 % Student-t interval over launches; none for a single one.
struct RatioEstimate {
  double time_ratio = 1;
  std::optional<Interval> interval;

  /// Returns whether the interval excludes 1.
  bool differs() const { return interval && (interval->low > 1 || interval->high < 1); }
};
/// Returns none where there is no launch.
std::optional<RatioEstimate> ratio_of(const LaunchLogs& logs);

/// Each arm against the baseline, the mean over cells with equal weights, launch by launch.
struct ArmEffects {
  std::map<std::string, LaunchLogs> logs;  ///< By label; the baseline has zeros.
  std::vector<std::string> cells;          ///< Labels of the cells in the mean: every arm in `logs` has a ratio there.
  std::vector<std::string> left_out;       ///< Arms with a ratio in fewer than half as many cells as the arm with most.
};
ArmEffects arm_effects(std::span<const SummaryRow* const> rows);

/// A label taken apart: `bigcode,+kv-pad:multiple=8,-fused` is bigcode with two switches.
struct ArmParts {
  std::string base;
  std::vector<std::string> switches;  ///< With their sign.
};
ArmParts arm_parts(const std::string& label);

}  // namespace decodelab
