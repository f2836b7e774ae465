// An arm of a run whose command starts another process.
#pragma once

#include <memory>
#include <vector>

#include "bench/measure/worker.h"
#include "bench/plan/sweep_plan.h"
#include "reports/store/store.h"

namespace decodelab {

/// Returns whether every arm is another process, so that this one has nothing to load.
bool all_external(const std::vector<ArmRecord>& arms);

/// Returns the worker of `arm`, not started yet. Whenever it starts, its engine, version and settings are written into
/// the store; values that differ from those that the run already holds are a WorkerError. Throws std::invalid_argument
/// where the plan's checkpoint cannot be read.
std::unique_ptr<Worker> make_process_worker(Store& store, const ArmRecord& arm, const LaunchPlan& plan);

}  // namespace decodelab
