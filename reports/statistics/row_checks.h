// What else the blocks of a row say about its contrast: the order of visits, the course of a visit, and another
// location.
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

/// A mean over launches of logarithms, with its 95 % Student-t interval; none of it for fewer than two launches.
struct LaunchEffect {
  double mean = 0;
  Interval interval;

  /// Beyond `limit` on either side, and not 0 for sure.
  bool exceeds(double limit) const;
  bool operator==(const LaunchEffect&) const = default;
};

/// How much longer an arm's visit takes for each place further back in its block; none where arms run in slices, and
/// share all places.
///
/// From all arms of the cell: the difference of an arm's two visits over the places between them, the arm in the
/// middle, which follows itself, left out.
std::optional<LaunchEffect> slot_effect(std::span<const BlockRecord* const> blocks_of_cell);

/// What it adds to an arm's visit to follow another arm instead of itself.
///
/// Where arms run in slices of `slice_steps`: what the first steps of slices after another arm's are longer than the
/// rest, by their medians, spread over a slice; in slices of one step, than the steps after its own, which only arms at
/// the ends of a round have. Where visits are whole
/// (`slice_steps` is 0 or a visit's steps): in a block whose middle it is, an arm follows another arm first and itself
/// then; the difference, less what a place costs in that block, is the effect, and there is none where the arm was
/// never in the middle of a block of two launches or more.
std::optional<LaunchEffect> carry_over(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                       std::int64_t slice_steps);

/// How much the contrast of arm and baseline grows from the first half of their visits to the second: a warm-up that
/// was too short for one of them. Steps that both lengthen alike, as a growing cache does, cancel.
std::optional<LaunchEffect> slope_in_visits(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                            std::int64_t baseline_id);

/// The contrast of the medians of visits.
std::optional<LaunchEffect> median_contrast(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                            std::int64_t baseline_id);

/// What the contrast of the means of all steps has beyond the one of pairs (compare_arms()), of which the outer fifths
/// are cut: costs of one of the arms that come so seldom, and not every 8th step, that they are cut as hiccups are (a
/// cache that grows by 64 tokens).
std::optional<LaunchEffect> rare_costs(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                                       std::int64_t baseline_id);

/// Flags of rows by these effects, in shares of `margin` (a share of time).
inline constexpr const char* kCarryOverFlag = "carry-over";   ///< A third of the margin.
inline constexpr const char* kSlopeFlag = "slope-in-visits";  ///< A quarter of the margin.
inline constexpr const char* kMedianDiffersFlag =
    "median-differs";  ///< FASTER or SLOWER, and the medians do not say so.

inline constexpr const char* kRareCostsFlag = "rare-costs";  ///< The margin.

/// What is kept of all that on an arm's row.
struct RowChecks {
  std::optional<LaunchEffect> carry_over;
  std::vector<std::string> flags;
};
/// `verdict` is that of the mean, where it has one; `slice_steps` is the cell's.
RowChecks check_row(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t slice_steps, std::int64_t arm_id,
                    std::int64_t baseline_id, double margin, std::optional<Verdict> verdict);

}  // namespace decodelab
