// The counter pass: counts the bytes that a step moves in a device's memory, stage by stage, by the device's own
// counters. The pass is neither timed nor traced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/engine_worker.h"
#include "engine/engine.h"
#include "profiles/range.h"

namespace decodelab {

/// Bytes that one stage moves in one step. The modelled bytes include accesses that the device's caches serve; the
/// counted ones do not.
struct StageTraffic {
  Stage stage = Stage::other;
  std::int64_t modelled_bytes = 0;  ///< Over all layers, by modelled_stage_bytes().
  double read_bytes = 0;
  double written_bytes = 0;
};

struct CountedBytes {
  std::vector<StageTraffic> stages;  ///< Stages with counted or modelled bytes, in the order of kStageNames.
  std::string refusal;               ///< Why nothing could be counted; empty where something was.
};

/// Counts the bytes of one step of the cell, with CUPTI's range profiler around every outermost stage, each of which
/// waits for the device. What a CUDA graph replays counts for the stage that launches it. No session of CUPTI may be
/// alive: end the trace first.
///
/// Returns a refusal where nothing can be counted (a CPU, no driver, no permission, a completion). Throws
/// std::runtime_error where a call of CUPTI fails for another reason.
CountedBytes count_bytes(const Engine& engine, const CellInput& input, const CellRecord& cell);

}  // namespace decodelab
