// Checks the contrast of a row by its blocks: for effects of the order of visits, for changes within a visit, and by
// other estimates of location.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/statistics/estimates.h"
#include "reports/statistics/verdict.h"
#include "reports/store/record.h"

namespace decodelab {

/// A mean over launches of logarithms, with its 95 % Student-t interval. There is none for fewer than two launches.
struct LaunchEffect {
  double mean = 0;
  Interval interval;

  /// Returns whether the mean lies beyond `limit` on either side and the interval excludes 0.
  bool exceeds(double limit) const;
  bool operator==(const LaunchEffect&) const = default;
};

/// Returns how much longer an arm's visit takes for each place further back in its block; none where arms run in slices
/// and so share all places.
///
/// Takes the mean over the arms of the cell: the difference of an arm's two visits, divided by the number of places
/// between them. The arm in the middle of the block, which follows itself, is left out.
std::optional<LaunchEffect> slot_effect(std::span<const BlockRecord* const> blocks_of_cell);

/// Returns how much longer an arm's visit takes because it follows another arm instead of itself.
///
/// Where arms run in slices of `slice_steps`, it compares the median of the first steps of slices that follow another
/// arm's with that of the other steps, and spreads the difference over a slice. In slices of one step it compares with
/// the steps that follow the arm's own, which only the arms at the ends of a round have. Where visits are whole
/// (`slice_steps` is 0 or a visit's steps), the first visit of the arm in the middle of a block follows another arm and
/// the second follows itself; the effect is their difference, corrected for what a place costs in that block. There is
/// none where the arm was in the middle of blocks of fewer than two launches.
std::optional<LaunchEffect> carry_over(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                       std::int64_t slice_steps);

/// Returns how much the contrast of arm and baseline grows from the first half of their visits to the second, which
/// shows a warm-up that was too short for one of them. What lengthens the steps of both alike, such as a growing cache,
/// cancels.
std::optional<LaunchEffect> slope_in_visits(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                            std::int64_t baseline_id);

/// Returns the contrast of the medians of visits.
std::optional<LaunchEffect> median_contrast(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                            std::int64_t baseline_id);

/// Returns the contrast of the means of all steps less that of pairs (compare_arms()), which cuts the outer fifths. The
/// difference shows costs of one arm that come so rarely, and not every 8th step, that they are cut like hiccups (a
/// cache that grows by 64 tokens).
std::optional<LaunchEffect> rare_costs(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                       std::int64_t baseline_id);

/// Flags that check_row() sets where an effect exceeds its limit: a part of `margin`, which is a share of time.
inline constexpr const char* kCarryOverFlag = "carry-over";   ///< Limit: a third of the margin.
inline constexpr const char* kSlopeFlag = "slope-in-visits";  ///< Limit: a quarter of the margin.
/// The verdict is FASTER or SLOWER, and the contrast of the medians does not show it.
inline constexpr const char* kMedianDiffersFlag = "median-differs";

inline constexpr const char* kRareCostsFlag = "rare-costs";  ///< Limit: the margin.

/// What an arm's row keeps of these checks.
struct RowChecks {
  std::optional<LaunchEffect> carry_over;
  std::vector<std::string> flags;
};
/// Runs these checks on a row. `verdict` is that of the row's mean, where it has one; `slice_steps` is the cell's.
RowChecks check_row(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t slice_steps, std::int64_t arm_id,
                    std::int64_t baseline_id, double margin, std::optional<Verdict> verdict);

}  // namespace decodelab
