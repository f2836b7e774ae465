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

/// Core time that other processes may use during a block before it is void: for all arms alike, by telemetry alone,
/// never by its times.
inline constexpr double kVoidShare = 0.02;
/// Share of a cell's blocks that may be void; beyond it the machine is too busy to choose, and none is dropped: the
/// redrawn order keeps the test honest, and the noise shows in its interval.
inline constexpr double kMostVoid = 0.25;
/// Core time of others beyond which no block means anything: every step waits for its turn. Between a load that leaves
/// a core (a thread on each second core) and one that leaves none.
inline constexpr double kSaturatedShare = 0.35;
/// Flags of rows by these rules.
inline constexpr const char* kVoidBlocksFlag = "void-blocks";
inline constexpr const char* kDisturbedFlag = "disturbed";
inline constexpr const char* kSaturatedFlag = "saturated";

/// The blocks of a cell that count.
struct ValidBlocks {
  std::vector<const BlockRecord*> blocks;
  std::int64_t void_blocks = 0;  ///< Left out.
  bool disturbed = false;        ///< Too many would have been void: none was left out.
  bool saturated = false;        ///< And others took more than kSaturatedShare on average: there is no verdict.
};
ValidBlocks valid_blocks(std::span<const BlockRecord* const> blocks_of_cell, double void_share = kVoidShare,
                         double most_void = kMostVoid);

/// What one block says about an arm.
struct BlockContrast {
  std::int64_t launch = 0;
  std::int64_t block = 0;
  double contrast = 0;  ///< log_ratio_of_pairs() of the arm's visits and the baseline's.
  /// Half the difference between the second and the first visits of the two, which no true effect moves: a check of
  /// drift and slots, blind to launch effects. None unless both were visited exactly twice.
  std::optional<double> in_run_null;
};

/// An arm against the baseline of its cell. Ratios are times of the arm over times of the baseline: below 1 is faster.
struct Comparison {
  std::vector<BlockContrast> blocks;     ///< In the order in which they ran.
  std::int64_t skipped_blocks = 0;       ///< Blocks in which the arm or the baseline has no visit.
  std::vector<double> launch_contrasts;  ///< One value per launch, the mean of its blocks, in the order of launches.
  std::optional<double> time_ratio;      ///< exp of the mean over launches; none without a common block.
  std::optional<Interval>
      interval;  ///< 95 % Student t over launches; none for one launch, which says something about this process only.
  std::optional<double> mde;  ///< Smallest detectable effect as a share (0.02 is 2 %), 80 % power; none for one launch.
  std::optional<Interval>
      in_run_null;  ///< 95 % interval over launches of the mean in-run null, in logarithms; should span 0.
};

/// `blocks_of_cell` are the blocks of one cell. Launches, not blocks, are the unit of inference: layout and allocator
/// vary per process.
Comparison compare_arms(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                        std::int64_t baseline_id);

/// The mean contrast of each launch that has one, by the index of the launch.
std::map<std::int64_t, double> mean_contrasts(const Comparison& comparison);

/// Mean over visits of the visit statistic of an arm, per launch: (launch, ns) in the order of launches.
std::vector<std::pair<std::int64_t, double>> launch_means(std::span<const BlockRecord* const> blocks_of_cell,
                                                          std::int64_t arm_id);

}  // namespace decodelab
