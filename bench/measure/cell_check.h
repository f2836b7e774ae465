// Finds out, before a cell is timed, which of its arms can run there and compute what the reference computes.
#pragma once

#include "bench/measure/worker.h"
#include "reports/store/record.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace decodelab {

/// The flag of another engine's row that showed no logits: only its tokens were held against the reference's.
inline constexpr const char* kTokensOnlyFlag = "tokens-only";

/// The arms of a launch, ready to run.
struct ArmWorkers {
  std::map<std::int64_t, Worker*> by_arm;            ///< By the arm's id, of those that run in some cell; borrowed.
  Worker* reference = nullptr;                       ///< The oracle; may be one of the arms.
  std::int64_t reference_arm = 0;                    ///< Its id, or 0.
  std::string no_reference{};                        ///< Why there is none; then `reference` is null.
  std::function<void(std::int64_t arm_id)> started;  ///< Told before an arm runs.
};

/// What is asked of the visits of a launch.
struct VisitPlan {
  std::int64_t fewest_steps = 0;  ///< Timed steps of a visit, as many as kMaximumSteps, however long they take.
  std::int64_t turn_ns = 0;       ///< That an arm's turn fills; 0: whole visits.
};

/// The flag of a row in whose cell arms do not take turns, although the plan asks for it: an arm cannot, or all together need too much memory.
inline constexpr const char* kWholeVisitsFlag = "whole-visits";

/// The result of a check: the cell's rows with their new status, the steps that every visit will time (0: no arm is left) and those of
/// a turn, and the seconds that a block is expected to take.
struct CellCheck {
  std::vector<CellArmRecord> rows;
  std::int64_t steps = 0;
  std::int64_t turn_steps = 0;
  double block_seconds = 0;
};

/// Checks the `planned` rows of one cell; see run_launch(). `positions` is the model's limit.
CellCheck check_cell(const CellRecord& cell, std::vector<CellArmRecord> rows, const ArmWorkers& workers,
                     std::int64_t positions, const std::function<std::int64_t()>& available_memory_bytes,
                     const VisitPlan& visits);

/// The row of an arm that threw `error` in a cell: `oom` where memory ran out, else `failed`, with the first line of the message.
CellArmRecord row_of_exception(CellArmRecord row, const std::exception& error);

}  // namespace decodelab
