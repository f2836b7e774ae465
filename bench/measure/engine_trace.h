// The trace pass: some steps of one arm in one cell with every collector on, and what that cost. Never a timed pass.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/engine_worker.h"
#include "bench/plan/arm.h"
#include "engine/engine.h"
#include "profiles/collect/collector.h"
#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"

namespace decodelab {

struct TraceRequest {
  std::string model;  ///< As typed.
  std::int64_t steps = 8;
  TraceTier tier = TraceTier::causes;
  std::int64_t most_events = kMostTraceEvents;
  /// Pairs of a traced and an untraced visit; empty: as many as fit a second or two; 0: the perturbation is not
  /// measured.
  std::optional<std::int64_t> pairs;
  bool measure_bandwidth = true;  ///< Of a CPU, which takes a second the first time.
};

struct TracedCell {
  Trace trace;
  TraceQuality quality;
  Attribution attribution;
  std::vector<std::vector<std::int64_t>> token_ids;  ///< Of each traced step.
};

/// Warms up, traces `request.steps` steps, and measures what tracing does to a step by pairs of visits in mirrored
/// order. The steps are those of a timed visit: from the cell's length on, begun afresh where the cell has no more
/// room.
///
/// Throws std::invalid_argument, before it traces, for a step so large that the steps would exceed `most_events`, and
/// for steps under 1; and what the engine throws.
TracedCell trace_cell(const Engine& engine, const Arm& arm, const CellInput& input, const CellRecord& cell,
                      const TraceRequest& request);

/// What a trace on a GPU would be collected with on this machine, and why not with the rest; on a CPU it is the part
/// that needs no driver.
std::vector<CollectorState> trace_collectors();

}  // namespace decodelab
