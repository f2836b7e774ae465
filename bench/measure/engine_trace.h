// The trace pass: records some steps of one arm in one cell with every collector on, and measures how much that slows
// them down. Its steps never count as timed steps.
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
  bool measure_bandwidth = true;  ///< Measures the read bandwidth of a CPU, which takes a second the first time.
};

struct TracedCell {
  Trace trace;
  TraceQuality quality;
  Attribution attribution;
  std::vector<std::vector<std::int64_t>> token_ids;  ///< Of each traced step.
};

/// Warms up, traces `request.steps` steps, and measures how much tracing slows a step down, by pairs of a traced and an
/// untraced visit in mirrored order. The steps are those of a timed visit: they start at the cell's length, and start
/// there again where the cell has no more room.
///
/// Throws std::invalid_argument, before it traces, for a step so large that the steps would exceed `most_events`, and
/// for steps under 1; and what the engine throws.
TracedCell trace_cell(const Engine& engine, const Arm& arm, const CellInput& input, const CellRecord& cell,
                      const TraceRequest& request);

/// Returns every collector that a trace on a GPU uses, whether it can run on this machine, and if not, why. A trace on
/// a CPU uses those that need no driver.
std::vector<CollectorState> trace_collectors();

}  // namespace decodelab
