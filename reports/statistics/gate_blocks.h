// Gate blocks: two launches, one with the baseline's process started first and one with the candidate's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// One with the baseline's process started first, one with the candidate's. Every launch has fresh processes.
inline constexpr std::int64_t kLaunchesOfAGateBlock = 2;

/// Something that must be right before a decision is one.
struct GateProblem {
  std::optional<CellRecord> cell;  ///< Where it is about one.
  std::string words;               ///< One clause without the cell.
};

/// One cell in the gate blocks that were asked for.
struct GateCell {
  CellRecord cell;
  /// The mean of both launches' mean block contrasts, log candidate - log baseline; NaN where a launch has no valid
  /// block.
  std::vector<double> values;
  /// Half of launch 2k + 1's contrast (candidate's process first) less that of launch 2k; NaN like `values`.
  std::vector<double> launch_order;
  std::int64_t blocks = 0;
  std::int64_t void_blocks = 0;
};

/// The arms of a gate: the one marked as baseline and the only other one.
struct GateArms {
  const ArmRecord* baseline = nullptr;
  const ArmRecord* candidate = nullptr;
};
/// The arms, or why the run is no gate's.
std::optional<std::string> find_gate_arms(const RunData& data, GateArms& arms);

/// Indices k of the gate blocks of which both launches, 2k and 2k + 1, have run. One whose launch left no block at all
/// (it crashed) is none; nor is the last one while the run goes on and a cell is still to come.
std::vector<std::int64_t> gate_blocks_of(const RunData& data);

/// Every cell of the run over the given gate blocks. Blocks are void by telemetry alone.
std::vector<GateCell> gate_cells(const RunData& data, const GateArms& arms,
                                 const std::vector<std::int64_t>& gate_blocks, double void_share);

/// Cells that a launch has no block of, and blocks that are not void and lack an arm's times: what makes a gate
/// invalid.
std::vector<GateProblem> missing_times(const RunData& data, const GateArms& arms,
                                       const std::vector<std::int64_t>& gate_blocks, double void_share);

/// Seconds that a gate block takes: the median from the start of one to the start of the next; none for fewer than two.
std::optional<double> gate_block_seconds(const RunData& data, const std::vector<std::int64_t>& gate_blocks);

/// Seconds from the first block's start to the last one's of the given gate blocks; 0 for none.
double gate_elapsed_seconds(const RunData& data, const std::vector<std::int64_t>& gate_blocks);

}  // namespace decodelab
