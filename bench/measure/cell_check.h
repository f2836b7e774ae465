// Finds out, before a cell is timed, which of its arms can run there and compute what the reference computes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/measure/cell_outputs.h"
#include "reports/store/record.h"

namespace decodelab {

/// What is asked of the visits of a launch.
struct VisitPlan {
  std::int64_t fewest_steps = 0;  ///< Timed steps of a visit, as many as kMaximumSteps, however long they take.
  std::int64_t slice_ns = 0;      ///< That an arm's slice fills; 0: whole visits.
};

/// The flag of a row in whose cell arms do not run in slices, although the plan asks for it: an arm cannot, or all
/// together need too much memory.
inline constexpr const char* kWholeVisitsFlag = "whole-visits";

/// The result of a check: the cell's rows with their new status, the steps that every visit will time (0: no arm is
/// left) and those of a slice, and the seconds that a block is expected to take.
struct CellCheck {
  std::vector<CellArmRecord> rows;
  std::int64_t steps = 0;
  std::int64_t slice_steps = 0;
  double block_seconds = 0;
  std::optional<CellProofRecord>
      proof{};  ///< What later launches are held against; empty where there was no reference.
};

/// Checks the `planned` rows of one cell; see run_launch(). `positions` is the model's limit.
CellCheck check_cell(const CellRecord& cell, std::vector<CellArmRecord> rows, const ArmWorkers& workers,
                     std::int64_t positions, const std::function<std::int64_t()>& available_memory_bytes,
                     const VisitPlan& visits);

}  // namespace decodelab
