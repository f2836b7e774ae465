// A worker in a process of its own: another build of decodelab, or another engine.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "bench/measure/process/worker_process.h"
#include "bench/measure/process/worker_protocol.h"
#include "bench/measure/worker.h"
#include "bench/plan/prompts.h"

namespace decodelab {

/// How a worker's process is started, and what it must load.
struct ProcessWorkerOptions {
  std::string command;
  WorkerLoad load;
  std::vector<RealPrompt> prompts{};   ///< What rows are cut from; none: random ids.
  std::vector<std::int64_t> places{};  ///< As in WorkerProcess.
  std::int64_t vocabulary = 0;         ///< Vocabulary size of the model, from which prompts are drawn.
  std::int64_t positions = 0;
  std::chrono::seconds reply_limit{300};  ///< For each reply; loading and compiling count as one.
  /// Called at each start; may throw WorkerError to refuse the worker.
  std::function<void(const WorkerHello&)> identified;
};

/// Starts its process when it is first needed, keeps it stopped between calls, and starts it again after a death.
///
/// The process is stopped between the slices of a visit too, and continued there without the wait of kWakeUp: it has
/// warmed up, and the cores are busy. Every call may throw WorkerError (WorkerDied and WorkerTimedOut are such); after
/// kMostDeaths in a row the worker is given up. A visit that reports another number of steps than was asked for, or
/// more time than the call itself took, is a WorkerError.
class ProcessWorker final : public Worker {
 public:
  static constexpr int kMostDeaths = 3;
  /// How long a stopped process is continued before its call, so that its pages and clocks come back.
  static constexpr std::chrono::milliseconds kWakeUp{20};

  explicit ProcessWorker(ProcessWorkerOptions options) : options_(std::move(options)) {}
  ~ProcessWorker() override;

  /// Returns 0, since the bytes that another engine needs are not known beforehand.
  std::int64_t bytes_needed(const CellRecord&) const override { return 0; }
  OutputTrace outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) override;
  OutputTrace choices(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) override;
  Probe probe(const CellRecord& cell) override;
  std::unique_ptr<OpenVisit> open_visit(const CellRecord& cell) override;
  bool times_slices() const override { return hello_ && hello_->slices && !leaves_; }
  /// Returns 3: the first step of a slice waits for threads to wake, and must not be most of the slice.
  std::int64_t fewest_slice_steps() const override { return 3; }
  OutputRule output_rule(const CellRecord& cell) const override;
  /// Known once the worker has started.
  double logit_bound() const override { return logit_bound_; }
  void begin_start() override;
  void start() override;
  void begin_end() override;
  SideWork side_work() const override { return side_work_; }
  double cpu_seconds() const override;
  std::int64_t resident_bytes() const override { return process_ ? process_->resident_bytes() : 0; }
  void leave_between_calls() override { leaves_ = true; }

 private:
  class WholeVisit;
  class SlicedVisit;

  std::string ask(const std::string& request);
  OutputTrace ask_for_outputs(const CellRecord& cell, std::int64_t steps, const std::string& request,
                              const OutputTrace* fed);
  /// Prepares a cell, whose rows begin with the prompts of `fed` where it has any.
  void prepare(const CellRecord& cell, const OutputTrace* fed);
  template <typename Call>
  auto awake(const CellRecord& cell, Call&& call, const OutputTrace* fed = nullptr);
  template <typename Call>
  auto going_on(std::chrono::milliseconds wake_up, Call&& call);
  /// Asks for steps, and checks their number and times; see the class.
  VisitTimes ask_for_steps(std::int64_t steps, const std::string& request, VisitTimes (*parse)(std::string_view line));
  void rest();

  ProcessWorkerOptions options_;
  std::optional<WorkerProcess> process_;
  std::optional<WorkerHello> hello_;
  std::string prepared_;  ///< The request that prepared the current cell.
  bool greeted_ = false;  ///< The process has said hello and has loaded its model.
  double logit_bound_ = 0;
  SideWork side_work_;
  int deaths_ = 0;
  bool leaves_ = false;
  double past_cpu_seconds_ = 0;  ///< Of processes that were ended; what processes that died had used is not known.
};

}  // namespace decodelab
