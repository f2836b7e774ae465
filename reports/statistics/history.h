// Follows a metric over the commits of a store and finds the steps in it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/statistics/summary.h"
#include "reports/store/record.h"

namespace decodelab {

/// What is followed: a time (median_ns, mean_ns, p90_ns, ...), time_ratio, bound_share, peak_bytes, or a counter of a
/// step (`counters.operators`).
struct HistoryRequest {
  std::string metric = "mean_ns";
  std::string arm;   ///< Empty: the baseline of each run, or every other arm where the metric is a ratio.
  std::string cell;  ///< As cell_label() names it, `b4 tg @ d4096`; empty: every cell.
};

/// The value that one run gave.
struct HistoryPoint {
  std::int64_t run_id = 0;
  std::int64_t cell_id = 0;
  std::string run_name;
  std::string commit;
  std::int64_t started_unix_ns = 0;
  double value = 0;
  /// Deviation of the metric between blocks, as a share; none for a count, which does not vary.
  std::optional<double> deviation;
  bool step = false;  ///< The level changed here, for this and the next point.
  bool open = false;  ///< The newest point, if it would begin a step: a further point must confirm it.
  /// Share by which the value differs from the level before it; none for the first point.
  std::optional<double> change;
};

/// One arm in one cell on one machine with one model and type; points that differ in any of these are never in one
/// curve.
struct HistorySeries {
  std::string arm;
  CellRecord cell;
  std::string machine;
  std::string model;
  std::vector<HistoryPoint> points;  ///< Oldest first.
  double threshold = 0;  ///< Share that counts as a step here: kStepDeviations block deviations; 0 for counts.

  std::int64_t steps() const;
};

/// A step is this many block deviations away from the level before it, for at least kStepPoints points in a row.
inline constexpr double kStepDeviations = 3;
inline constexpr std::size_t kStepPoints = 2;

/// Marks the steps of a series. The level is the median of the points since the last step; the deviation is the median
/// of the points' own. A single point beyond the threshold is no step: it is an outlier where the next one is back, and
/// `open` where it is the newest.
void find_steps(HistorySeries& series);

/// Returns all series of the runs that the request asks for, in the order in which they first appear, with their steps
/// marked. Rows that are not ok, and runs that are not finished, have no point. Throws std::invalid_argument, which
/// lists the known names, for a metric that no row can have, and for an arm or a cell that no run has.
std::vector<HistorySeries> history_of(std::span<const RunData> runs, const HistoryRequest& request);

/// Returns the names that `metric` may have, except those of counters.
std::vector<std::string> history_metrics();

}  // namespace decodelab
