// Finds out, before a cell is timed, which of its arms can run there and compute what the reference computes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/measure/cell_outputs.h"
#include "reports/store/record.h"

namespace decodelab {

/// What a plan asks of each visit of a launch.
struct VisitPlan {
  std::int64_t fewest_steps = 0;  ///< The fewest timed steps of a visit, up to kMaximumSteps, however long they take.
  std::int64_t slice_ns = 0;      ///< Time that one slice of a visit fills; 0: a visit is one slice.
};

/// The counter of tokens that came from a server in one event with a token before them; rows that have some carry
/// kTokensBundledFlag.
inline constexpr const char* kBundledTokens = "bundled_tokens";

/// The result of a check: the cell's rows with their new status, the steps that every visit will time (0: no arm is
/// left) and those of a slice, and the seconds that a block is expected to take.
struct CellCheck {
  std::vector<CellArmRecord> rows;
  std::int64_t steps = 0;
  std::int64_t slice_steps = 0;  ///< 0: see CellRecord::in_rounds().
  double block_seconds = 0;
  /// What later launches compare the arms' choices with: one for each request that had a reference.
  std::vector<CellProofRecord> proofs{};
};

/// Checks the `planned` rows of one cell; see run_launch(). `positions` is the model's limit.
CellCheck check_cell(const CellRecord& cell, std::vector<CellArmRecord> rows, const ArmWorkers& workers,
                     std::int64_t positions, const std::function<std::int64_t()>& available_memory_bytes,
                     const VisitPlan& visits);

}  // namespace decodelab
