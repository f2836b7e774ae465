// One row per cell and arm of a run, with every number that tables, figures and exports show.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/statistics/comparison.h"
#include "reports/statistics/row_checks.h"
#include "reports/statistics/verdict.h"
#include "reports/store/record.h"

namespace decodelab {

/// Flag of a row with a single launch: its ratio has no interval and can have no verdict.
inline constexpr const char* kThisProcessOnly = "this process only";

/// The steps and launches without which a percentile is not shown: with fewer steps it depends on chance, with fewer
/// launches on a single memory layout.
struct PercentileRule {
  const char* name;
  double share;
  std::int64_t steps;
  std::int64_t launches;
};
inline constexpr PercentileRule kPercentileRules[] = {
    {"p90", 0.90, 64, 10}, {"p95", 0.95, 130, 10}, {"p99", 0.99, 662, 10}};
/// What a run that is made for percentiles must have: the rule that asks for most steps and launches.
inline constexpr const PercentileRule& kTailRule = kPercentileRules[std::size(kPercentileRules) - 1];

/// One arm in one cell. Times are of single steps, pooled over all visits, unless said otherwise; none where nothing
/// was timed.
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
  std::optional<std::int64_t> p90_ns;  ///< This and the next two only where kPercentileRules allows.
  std::optional<std::int64_t> p95_ns;
  std::optional<std::int64_t> p99_ns;
  /// Paired, arm over baseline; 1 for the baseline, none where the status forbids a comparison.
  std::optional<double> time_ratio;
  std::optional<double> time_ratio_low;
  std::optional<double> time_ratio_high;
  std::optional<double> speedup;  ///< Inverse of time_ratio.
  std::optional<double> mde;  ///< Smallest detectable effect as a share, by the rule of the verdict where there is one.
  Decision decision;          ///< Within the family of the run; without a verdict for the baseline.
  /// Time of the slower roofline of the same blocks over the arm's. At 1 the arm is as fast as the machine can read or
  /// multiply; above 1, the cell's weights stay in a cache. None where the run has no rooflines.
  std::optional<double> bound_share;
  std::optional<double> bound_share_low;  ///< 95 %, Student's t over launches.
  std::optional<double> bound_share_high;
  std::optional<std::int64_t> peak_bytes;
  std::vector<std::string> flags;
  Counters counters;
  std::int64_t ties = 0;  ///< Rows whose largest logit is another id, within the tie rule; see VerificationResult.
  std::optional<Agreement> agreement;
  std::optional<QualityRecord> quality;  ///< Of the arm, in all of its rows; none where it was not asked for.

  std::vector<std::pair<std::int64_t, double>> launch_means_ns;  ///< (launch, mean visit statistic).
  std::optional<double> cell_mean_ns;                            ///< Mean of launch_means_ns.
  std::optional<Interval> cell_mean_interval_ns;  ///< 95 % over launches, unpaired: wider than what the ratio resolves.
  Comparison comparison;                          ///< Empty for the baseline.
  std::optional<LaunchEffect> slot;               ///< Of the cell: what a place further back in a block costs.
  std::optional<LaunchEffect> carry_over;         ///< What following another arm costs.

  /// Returns the length at which a curve shows the row: a decode visit times steps L .. L + m - 1 and is drawn at its
  /// middle.
  double plotted_length() const;
  /// Returns the interval of `time_ratio`, or nothing where one launch gives none.
  std::optional<Interval> time_ratio_interval() const {
    return time_ratio_low && time_ratio_high ? std::optional(Interval{*time_ratio_low, *time_ratio_high})
                                             : std::nullopt;
  }
  /// Returns whether ratios of this row may be shown.
  bool comparable() const { return decodelab::comparable(status, engaged); }
};

/// All cells of an arm together: the weighted mean of the logarithms of its time ratios. Phases weigh the same, within
/// a phase the batches, within a batch the lengths; cells in which the arm or the baseline was not measured are left
/// out.
struct Composite {
  ArmRecord arm;
  std::int64_t cells = 0;
  double time_ratio = 1;
  std::optional<Interval> interval;  ///< 95 %, Student's t over launches.
  Decision decision;
};

/// A run with its rows: cells in planned order, within a cell the arms in planned order.
struct RunSummary {
  RunRecord run;
  std::vector<ArmRecord> arms;
  std::vector<SummaryRow> rows;
  std::vector<Composite> composites;           ///< One per arm that is not the baseline and has more than one cell.
  std::vector<TimeSpentRecord> times_spent{};  ///< Of all launches.
  bool adaptive = false;                       ///< Looked at while it grew: see is_adaptive().
  std::string ablation{};  ///< `add-one` or `leave-one-out` where the arms turn one switch each; else empty.

  /// Returns the confidence level of the intervals of ratios, as column headings show it.
  const char* interval_level() const { return adaptive ? ">= 90 %" : "95 %"; }

  /// Returns the label of the baseline; empty where the run has none.
  std::string baseline() const;
};

/// Computes all rows. Throws std::invalid_argument for a row whose cell or arm is not part of the run.
RunSummary summarize(const RunData& data);

}  // namespace decodelab
