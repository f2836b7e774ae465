// Compares an arm with the baseline of its cell, block by block, so that drift and slow spells of the machine cancel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "reports/statistics/estimates.h"
#include "reports/store/record.h"

namespace decodelab {

/// Share of core time that other processes may use during a block; above it the block is void, for all arms alike,
/// where its launch has a better one. Only the telemetry decides this, never the times of the block.
inline constexpr double kVoidShare = 0.02;
/// Share of a cell's blocks that may be void. Above it the machine is too busy to choose among blocks, and none is
/// dropped: the test stays valid because the order of arms is redrawn, and the noise widens its interval.
inline constexpr double kMostVoid = 0.25;
/// Share of core time of other processes above which no block means anything, since every step waits for a core. The
/// value lies between a load that leaves cores free (a thread on every second core) and one that leaves none. Up to it
/// a launch keeps its only block: launches are what a verdict counts, and the noise of one widens its interval.
inline constexpr double kSaturatedShare = 0.35;
/// Flags that these rules set on rows.
inline constexpr const char* kVoidBlocksFlag = "void-blocks";
inline constexpr const char* kDisturbedFlag = "disturbed";
inline constexpr const char* kSaturatedFlag = "saturated";

/// Returns the blocks during which other processes used no more than `share` of core time.
std::vector<const BlockRecord*> quiet_blocks(std::span<const BlockRecord* const> blocks, double share);

/// The blocks of a cell that count.
struct ValidBlocks {
  std::vector<const BlockRecord*> blocks;
  std::int64_t void_blocks = 0;  ///< Blocks that were left out.
  bool disturbed = false;        ///< Some count that are not quiet: they are too many, or the only ones of launches.
  bool saturated = false;        ///< Too many, and others took more than kSaturatedShare on average: no verdict.
};
ValidBlocks valid_blocks(std::span<const BlockRecord* const> blocks_of_cell);

/// What one block says about an arm.
struct BlockContrast {
  std::int64_t launch = 0;
  std::int64_t block = 0;
  double contrast = 0;  ///< log_ratio_of_pairs() of the arm's visits and the baseline's.
  /// Half of the difference between the contrast of the first visits and that of the second visits. No true effect
  /// changes it: it checks for drift and for effects of the place in a block, but cannot see effects of a launch. None
  /// unless both arms were visited exactly twice.
  std::optional<double> in_run_null;
};

/// An arm against the baseline of its cell. Ratios are times of the arm over times of the baseline: below 1 is faster.
struct Comparison {
  std::vector<BlockContrast> blocks;     ///< In the order in which they ran.
  std::int64_t skipped_blocks = 0;       ///< Blocks in which the arm or the baseline has no visit.
  std::vector<double> launch_contrasts;  ///< One value per launch, the mean of its blocks, in the order of launches.
  std::optional<double> time_ratio;      ///< exp of the mean over launches; none without a common block.
  /// 95 % Student t over launches; none for one launch, which says something about this process only.
  std::optional<Interval> interval;
  std::optional<double> mde;  ///< Smallest detectable effect as a share (0.02 is 2 %), 80 % power; none for one launch.
  /// 95 % interval over launches of the mean in-run null, in logarithms; should span 0.
  std::optional<Interval> in_run_null;
};

/// Compares an arm with the baseline. `blocks_of_cell` are the blocks of one cell. Launches, not blocks, are the unit
/// of inference: layout and allocator vary per process.
Comparison compare_arms(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                        std::int64_t baseline_id);

/// Returns the mean contrast of each launch that has one, by the index of the launch.
std::map<std::int64_t, double> mean_contrasts(const Comparison& comparison);

/// Returns (launch, ns) for each launch, in the order of launches: the mean of visit_statistic() over the arm's visits.
std::vector<std::pair<std::int64_t, double>> launch_means(std::span<const BlockRecord* const> blocks_of_cell,
                                                          std::int64_t arm_id);

}  // namespace decodelab
