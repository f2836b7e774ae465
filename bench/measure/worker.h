// The interface of everything that decodes and can be timed: an arm of our own engine, another build, or another
// engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/measure/time_account.h"
#include "bench/measure/verification.h"
#include "reports/store/record.h"

namespace decodelab {

struct BatchWork;

/// What one visit measured.
struct VisitTimes {
  std::int64_t warmup_steps = 0;
  /// Needed of a worker that warms up in its first slice; else opening the visit is the warm-up.
  std::int64_t warmup_ns = 0;
  bool quiet = false;
  std::int64_t wall_ns = 0;
  std::vector<std::int64_t> samples_ns;
  std::vector<std::string> flags{};  ///< What the arm's row is marked with from now on.
};

/// An open visit: it has warmed up, and its steps are timed in one slice or in several, between which other arms may
/// run.
class OpenVisit {
 public:
  virtual ~OpenVisit() = default;
  /// Times the next `steps` steps. All slices together are the cell's steps.
  virtual void time_slice(std::int64_t steps) = 0;
  /// Times as little of the visit's `steps` as can be timed by itself, instead of time_slice(), and returns the share
  /// of them that is done: one round of a continuation where Worker::times_rounds() says so, else all of them.
  virtual double time_round(std::int64_t steps) {
    time_slice(steps);
    return 1;
  }
  /// Returns what was measured so far.
  virtual const VisitTimes& times() const = 0;
};

/// What is learned about a cell before its first block.
struct Probe {
  std::optional<std::int64_t> peak_bytes;  ///< The most bytes of tensors held beyond the weights, cache included; empty
                                           ///< where it cannot be known.
  Counters counters{};                     ///< Of the counted steps; empty where nothing can be counted.
  std::vector<std::string> unsteady{};     ///< Names of counters that differed when the same steps were counted again.
  std::optional<bool> engaged{};           ///< Whether the counters are what every variant of the arm expects.
  std::string missing{};                   ///< The first expectation that was not met, in one sentence.
  std::int64_t step_ns = 0;                ///< The fastest step seen, from which the number of timed steps is planned.
};

/// How an arm's outputs are compared with the reference's; see verification.h.
enum class OutputRule {
  free_running,    ///< Equal tokens and logits, each run fed its own choices.
  teacher_forced,  ///< Logits within the tolerance, fed the reference's tokens.
  none,            ///< Not compared, since it has no outputs: a roofline.
  tokens_only,     ///< Equal tokens of free runs, from an engine that shows no logits.
};

/// Says why a worker has no result, and which status its row gets: failed, oom, unsupported or timeout.
class WorkerError : public std::runtime_error {
 public:
  WorkerError(RowStatus row_status, const std::string& message) : std::runtime_error(message), status(row_status) {}
  RowStatus status;
};

/// Runs cells for one arm. Calls throw what the engine throws; the caller makes a row of it.
class Worker {
 public:
  virtual ~Worker() = default;

  /// Returns the most bytes that the cell needs beyond the weights, in closed form.
  virtual std::int64_t bytes_needed(const CellRecord& cell) const = 0;
  /// Lets the rows of cells begin with these prompts, in place of those that the worker would draw; none: its own.
  virtual void use_prompts(const std::vector<std::vector<std::int64_t>>& /*prompts*/) {}
  /// Lets cells of phase batching serve these requests, in place of those that the worker would draw.
  virtual void use_requests(const BatchWork& /*work*/) {}
  /// Runs `steps` steps of the cell and returns their tokens and logits. With `forced`, each decode step is fed the
  /// tokens of that run instead of its own choice: teacher forcing.
  virtual OutputTrace outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) = 0;
  /// Does what outputs() does, without logits, which are large to copy and to send.
  virtual OutputTrace choices(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) {
    OutputTrace trace = outputs(cell, steps, forced);
    trace.logits.clear();
    return trace;
  }
  /// Runs one or a few steps outside of any timed visit, to learn how much memory they need, what they count, and about
  /// how long they take.
  virtual Probe probe(const CellRecord& cell) = 0;
  /// Opens a visit, which warms up at the cell's own shape. The worker and `cell` must outlive the visit; a worker has
  /// one open visit at a time.
  virtual std::unique_ptr<OpenVisit> open_visit(const CellRecord& cell) = 0;
  /// Whether the steps of a visit may be timed in several slices; asked once the worker has started.
  virtual bool times_slices() const { return true; }
  /// Whether time_round() times less than all steps of the cell: a round of a continuation.
  virtual bool times_rounds(const CellRecord& /*cell*/) const { return false; }
  /// Fewest steps of a slice.
  virtual std::int64_t fewest_slice_steps() const { return 1; }
  /// Runs a whole visit in one slice of `cell.steps` steps.
  VisitTimes visit(const CellRecord& cell) {
    const auto open = open_visit(cell);
    open->time_slice(cell.steps);
    return open->times();
  }

  virtual OutputRule output_rule(const CellRecord& cell) const {
    return cell.dtype == "fp32" && logit_bound() == 0 ? OutputRule::free_running : OutputRule::teacher_forced;
  }
  /// Returns the most that a logit may be off by, of the largest, where the arm is lossy on purpose; 0: it is exact.
  virtual double logit_bound() const { return 0; }
  /// Returns what is added to the reference that a lossy arm is held to (Fidelity::held_to).
  virtual std::string held_to() const { return ""; }
  /// Returns a JSON object of what was decided by loading, which is added to what the worker said of itself.
  virtual std::string settings_json() const { return "{}"; }
  /// Starts whatever must run before a first visit; does nothing for a worker in this process.
  virtual void start() {}
  /// Begins what start() or the destructor will wait for, so that several workers start, or end, at the same time. The
  /// worker is not used between begin_start() and start(), nor after begin_end().
  virtual void begin_start() {}
  virtual void begin_end() {}
  /// Returns the time spent on loading, packing and filling so far, in any call.
  virtual SideWork side_work() const { return {}; }
  /// Returns the core seconds used, or the bytes held, by processes of its own, without this one.
  virtual double cpu_seconds() const { return 0; }
  virtual std::int64_t resident_bytes() const { return 0; }
  /// Makes the worker hold nothing between its calls; called where all workers together need too much memory.
  virtual void leave_between_calls() {}
};

}  // namespace decodelab
