// Measures the gate blocks of a run whose arms are all workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "bench/measure/launch_runner.h"
#include "bench/plan/sweep_plan.h"
#include "reports/statistics/gate_blocks.h"
#include "reports/store/store.h"

namespace decodelab {

/// Plans a sweep whose arms are all workers, to be measured by GateRun. Where the request's blocks are kFittedBlocks,
/// the first launch fixes them. Throws as make_sweep() does.
RunData plan_gate_run(const SweepRequest& request, const ModelConfig& config);

/// Called after each launch with the number of launches that are done, and the seconds that one took on average.
using GateDisplay = std::function<void(std::int64_t launches, double seconds_each)>;

/// Runs launches in this process, which only asks its workers, and stores each block as it ends.
class GateRun {
 public:
  /// Opens a run of the store, which must outlive this object; the run may have launches already. `fitted_seconds` is
  /// as in LaunchContext.
  GateRun(Store& store, std::int64_t run_id, GateDisplay display, double fitted_seconds);

  /// Runs launches until `gate_blocks` gate blocks are done; returns `stopped` where SIGINT or SIGTERM came first.
  LaunchEnd run_until(std::int64_t gate_blocks);

 private:
  Store& store_;
  std::int64_t run_id_;
  GateDisplay display_;
  LaunchContext context_;
  std::int64_t launches_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace decodelab
