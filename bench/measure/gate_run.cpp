// Runs the launches of a gate one after the other.
#include "bench/measure/gate_run.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "bench/machine/environment.h"
#include "bench/measure/external_arm.h"
#include "bench/measure/interrupt.h"

namespace decodelab {

RunData plan_gate_run(const SweepRequest& request, const ModelConfig& config) {
  SweepRequest sweep = request;
  const bool fitted = sweep.blocks == kFittedBlocks;
  sweep.blocks = fitted ? 1 : sweep.blocks;
  RunData data = make_sweep(sweep, config);
  data.run.blocks_per_launch = fitted ? kFittedBlocks : sweep.blocks;
  return data;
}

GateRun::GateRun(Store& store, std::int64_t run_id, GateDisplay display, double fitted_seconds)
    : store_(store), run_id_(run_id), display_(std::move(display)), start_(std::chrono::steady_clock::now()) {
  const RunRecord run = store.load_run_record(run_id);
  const LaunchPlan plan = launch_plan_from_json(run.plan_json);
  context_ = {
      .make_worker = [&store, plan](const ArmRecord& arm) { return make_process_worker(store, arm, plan); },
      .available_memory_bytes = available_memory_bytes,
      .piece_started = [](const LaunchPiece&) {},
      .piece_done = [](const LaunchPiece&, double) {},
      .arm_started = [](std::int64_t) {},
      .stop_requested = interrupted,
      .visits = visit_plan(plan, run),
      .fitted_seconds = fitted_seconds,
  };
}

LaunchEnd GateRun::run_until(std::int64_t gate_blocks) {
  for (; launches_ < gate_blocks * kLaunchesOfAGateBlock; ++launches_) {
    if (launches_ > 0) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
      display_(launches_, passed.count() / static_cast<double>(launches_));
    }
    const auto start = std::chrono::steady_clock::now();
    const LaunchEnd end = run_launch(store_, run_id_, launches_, context_);
    const std::int64_t took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    const std::int64_t rest = took - store_.time_spent_ns(run_id_, launches_);
    store_.add_times_spent(run_id_, {{.launch = launches_, .ns = std::max<std::int64_t>(rest, 0)}});
    if (end == LaunchEnd::stopped) {
      return LaunchEnd::stopped;
    }
  }
  return LaunchEnd::complete;
}

}  // namespace decodelab
