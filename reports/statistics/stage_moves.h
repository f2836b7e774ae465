// Where a difference went: the traces of two arms in one cell, stage by stage, as rows that add up to the whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// Name of the row for what lies in no stage.
inline constexpr const char* kResidualRow = "in no stage";

/// ns of one traced step.
struct StageMove {
  std::string name;
  double baseline_ns = 0;
  double candidate_ns = 0;
  double moved_ns() const { return candidate_ns - baseline_ns; }
};

/// Times of traced steps: they tell where a difference lies, and never how large it is without the trace.
struct StageMoves {
  CellRecord cell;  ///< Of the candidate.
  std::int64_t run_id = 0;
  std::string baseline_arm;
  std::string arm;
  std::string refusal;  ///< Why the traces say nothing; the lists are empty then.
  std::vector<std::string> warnings;
  /// The largest move first, then the residual: their sums are `step`.
  std::vector<StageMove> stages;
  StageMove step;               ///< The whole step.
  std::vector<StageMove> gaps;  ///< What a device waited for; no part of the sum.
};

/// One side of a pair.
struct TracedSide {
  const RunData* data = nullptr;
  const CellRecord* cell = nullptr;
  const ArmRecord* arm = nullptr;
};

/// Nothing where one of the two has no trace.
std::optional<StageMoves> stage_moves(const TracedSide& baseline, const TracedSide& candidate);

/// "attention took 1.234 ms less of a step of 30.1 ms, ..."; for a refusal, why. One sentence.
std::string stage_moves_sentence(const StageMoves& moves);

}  // namespace decodelab
