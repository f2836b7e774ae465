// Compares the traces of two arms in one cell, stage by stage, in rows that add up to the whole difference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// Name of the row for the time in no stage.
inline constexpr const char* kResidualRow = "in no stage";

/// Time of one stage on both sides, in ns per traced step.
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
  std::vector<StageMove> gaps;  ///< What a device waited for; not in the sum.
};

/// One side of a pair.
struct TracedSide {
  const RunData* data = nullptr;
  const CellRecord* cell = nullptr;
  const ArmRecord* arm = nullptr;
};

/// Compares the traces of both sides. Returns none where one of them has no trace.
std::optional<StageMoves> stage_moves(const TracedSide& baseline, const TracedSide& candidate);

/// Returns one sentence: "attention took 1.234 ms less of a step of 30.1 ms, ...", or, for a refusal, the reason.
std::string stage_moves_sentence(const StageMoves& moves);

}  // namespace decodelab
