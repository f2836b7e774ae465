// Step runners that record a decode step once for each bucket of sizes and then run the record.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/generation/graph_plan.h"
#include "engine/generation/step_runner.h"

namespace decodelab {

/// Work that was recorded and can be run again, on the same tensors.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void run() = 0;
};

/// Records what work issues to a device.
class WorkRecorder {
 public:
  virtual ~WorkRecorder() = default;

  /// Runs `work`, which may call record(), where recordings are made; everything issued before is done by then, and all
  /// of `work` on return.
  virtual void aside(const std::function<void()>& work) = 0;
  /// Calls `work` once and keeps what it issues, without waiting for it or, on a GPU, running it. What `work` throws is
  /// thrown on.
  virtual std::unique_ptr<RecordedWork> record(std::function<void()> work) = 0;
};

/// Records into CUDA graphs, on a stream of its own. Throws std::invalid_argument for a CPU and in a build without
/// CUDA.
std::unique_ptr<WorkRecorder> make_cuda_graph_recorder(const std::string& device);
/// Records nothing: its records call the work again. The oracle of tests, on any device.
std::unique_ptr<WorkRecorder> make_calling_recorder();

/// Called when there is something to record.
using RecorderFactory = std::function<std::unique_ptr<WorkRecorder>()>;

/// A runner of either scope; passes over guesses are recorded with whole steps only. Recorded steps read ids and
/// lengths from tensors that are written before each run, are shown the keys of their bucket, and may need spare rows
/// in the cache; amounts are counted as if the step had run eagerly, beside `graph_launches`.
std::unique_ptr<StepRunner> make_graph_runner(const StepRunnerOptions& options, GraphScope scope,
                                              const GraphBuckets& buckets, RecorderFactory recorder);

}  // namespace decodelab
