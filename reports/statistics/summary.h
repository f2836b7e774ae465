// One row per cell and arm of a run, with every number that tables, figures and exports show.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/statistics/comparison.h"
#include "reports/store/record.h"

namespace decodelab {

/// Flag of a row with a single launch: its ratio has no interval and can have no verdict.
inline constexpr const char* kThisProcessOnly = "this process only";

/// What must be there before a percentile is shown: fewer steps leave it to chance, fewer launches to one memory layout.
struct PercentileRule {
  const char* name;
  double share;
  std::int64_t steps;
  std::int64_t launches;
};
inline constexpr PercentileRule kPercentileRules[] = {
    {"p90", 0.90, 64, 10}, {"p95", 0.95, 130, 10}, {"p99", 0.99, 662, 10}};

/// One arm in one cell. Times are of single steps, pooled over all visits, unless said otherwise; none where nothing was timed.
struct SummaryRow {
  std::int64_t run_id = 0;
  CellRecord cell;
  ArmRecord arm;
  std::string model;
  RowStatus status = RowStatus::planned;
  std::string reason;
  std::optional<bool> engaged;
  std::int64_t launches = 0;  ///< Launches in which the arm was timed.
  std::int64_t blocks = 0;    ///< Blocks in which the arm was timed, over all launches.
  std::int64_t steps = 0;     ///< Timed steps over all visits.
  std::int64_t warmup = 0;    ///< Most warm-up steps of a visit.
  std::optional<std::int64_t> median_ns;
  std::optional<std::int64_t> mean_ns;
  std::optional<std::int64_t> min_ns;
  std::optional<std::int64_t> max_ns;
  std::optional<std::int64_t> p90_ns;  ///< This and the next two by kPercentileRules.
  std::optional<std::int64_t> p95_ns;
  std::optional<std::int64_t> p99_ns;
  std::optional<double>
      time_ratio;  ///< Paired, arm over baseline; 1 for the baseline, none where the status forbids a comparison.
  std::optional<double> time_ratio_low;
  std::optional<double> time_ratio_high;
  std::optional<double> speedup;  ///< Inverse of time_ratio.
  std::optional<double> mde;      ///< Smallest detectable effect as a share.
  std::optional<std::string> verdict;
  std::optional<double> bound_share;
  std::optional<std::int64_t> peak_bytes;
  std::vector<std::string> flags;
  std::map<std::string, double> counters;

  std::vector<std::pair<std::int64_t, double>> launch_means_ns;  ///< (launch, mean visit statistic).
  std::optional<double> cell_mean_ns;                            ///< Mean of launch_means_ns.
  std::optional<Interval> cell_mean_interval_ns;  ///< 95 % over launches, unpaired: wider than what the ratio resolves.
  Comparison comparison;                          ///< Empty for the baseline.

  /// Steps that the x axis of a curve adds to the length: a decode visit times steps L .. L + m - 1 and is drawn at its middle.
  double plotted_length() const;
  /// Whether ratios of this row may be shown.
  bool comparable() const;
};

/// A run with its rows: cells in planned order, within a cell the arms in planned order.
struct RunSummary {
  RunRecord run;
  std::vector<ArmRecord> arms;
  std::vector<SummaryRow> rows;

  /// Label of the baseline; empty where the run has none.
  std::string baseline() const;
};

/// Computes all rows. Throws std::invalid_argument for a row whose cell or arm is not part of the run.
RunSummary summarize(const RunData& data);

}  // namespace decodelab
