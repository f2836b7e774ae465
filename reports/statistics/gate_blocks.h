// Gate blocks: two launches, one with the baseline's process started first and one with the candidate's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// Launches of a gate block: one starts the baseline's process first, the other the candidate's. Every launch has fresh
/// processes.
inline constexpr std::int64_t kLaunchesOfAGateBlock = 2;

/// Something that must be put right before the gate can decide.
struct GateProblem {
  std::optional<CellRecord> cell;  ///< The cell that it is about; none where it is about no single cell.
  std::string words;               ///< One clause that does not name the cell.
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
/// Fills `arms`. Returns none, or a clause that says why the run is not one of a gate.
std::optional<std::string> find_gate_arms(const RunData& data, GateArms& arms);

/// Returns the indices k of the gate blocks of which both launches, 2k and 2k + 1, have run. Leaves out a gate block
/// with a launch that left no block at all (it crashed) and, while the run is not finished, the last gate block if a
/// cell is still to be measured.
std::vector<std::int64_t> gate_blocks_of(const RunData& data);

/// Returns every cell of the run over the given gate blocks. Telemetry alone decides which blocks are void.
std::vector<GateCell> gate_cells(const RunData& data, const GateArms& arms,
                                 const std::vector<std::int64_t>& gate_blocks, double void_share);

/// Returns what makes a gate invalid: cells of which a launch has no block, and blocks that are not void but lack an
/// arm's times. At most one problem per cell.
std::vector<GateProblem> missing_times(const RunData& data, const GateArms& arms,
                                       const std::vector<std::int64_t>& gate_blocks, double void_share);

/// Returns the seconds that a gate block takes: the median from the start of one to the start of the next; none for
/// fewer than two gate blocks.
std::optional<double> gate_block_seconds(const RunData& data, const std::vector<std::int64_t>& gate_blocks);

/// Returns the seconds from the first block's start to the last one's of the given gate blocks; 0 for none.
double gate_elapsed_seconds(const RunData& data, const std::vector<std::int64_t>& gate_blocks);

}  // namespace decodelab
