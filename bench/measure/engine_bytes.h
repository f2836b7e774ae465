// The counter pass: what a step moves in a device's memory by the device's own counters, stage by stage. Neither timed
// nor traced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/engine_worker.h"
#include "engine/engine.h"
#include "profiles/range.h"

namespace decodelab {

/// Bytes of one step. What stays in the device's caches is in the model and not in the counts.
struct StageTraffic {
  Stage stage = Stage::other;
  std::int64_t modelled_bytes = 0;  ///< modelled_stage_bytes().
  double read_bytes = 0;
  double written_bytes = 0;
};

struct CountedBytes {
  std::vector<StageTraffic> stages;  ///< Those that moved, or should have moved, anything; in the order of kStageNames.
  std::string refusal;               ///< Why nothing was counted; empty where it was.
};

/// Runs one step of the cell again, with CUPTI's range profiler around every outermost stage, each of which waits for
/// the device. What a CUDA graph replays counts for the stage that launches it. No session of CUPTI may be alive: end
/// the trace first.
///
/// What cannot be counted (a CPU, no driver, no permission, a completion) is a refusal. Throws std::runtime_error where
/// a call of CUPTI fails for another reason.
CountedBytes count_bytes(const Engine& engine, const CellInput& input, const CellRecord& cell);

}  // namespace decodelab
