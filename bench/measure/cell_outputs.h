// Compares the outputs of a cell's arms with the reference's: in full once a run, and by a digest of their choices in
// every later launch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/kept_outputs.h"
#include "bench/measure/worker.h"
#include "reports/store/record.h"

namespace decodelab {

/// What arms under one request are compared with.
struct ReferenceArm {
  Worker* worker = nullptr;  ///< Not owned.
  std::int64_t arm = 0;      ///< Its arm id, or 0 where it is no arm of the run.
};

/// The arms of a launch, ready to run.
struct ArmWorkers {
  std::map<std::int64_t, Worker*> by_arm;  ///< Workers by arm id, for the arms that run in some cell; not owned.
  /// What each of them asks, as in its label, behind what is added to the reference that it is held to; absent:
  /// nothing.
  std::map<std::int64_t, std::string> requests{};
  /// Returns what computes the reference outputs under a request, made at the first call for it; it may be one of the
  /// arms. Throws std::runtime_error, with the reason, where there is none.
  std::function<ReferenceArm(const std::string& request)> reference;
  /// Makes a worker of the reference in float32, which lives for one cell; empty, or null, where there is none.
  std::function<std::unique_ptr<Worker>(const std::string& request)> exact{};
  std::function<void(std::int64_t arm_id)> started;  ///< Called before an arm runs.
  TimeAccount* account = nullptr;                    ///< The time account of the launch; not owned.
  const KeptOutputs* kept = nullptr;                 ///< The reference's outputs of earlier runs; may be null.

  std::string request_of(const CellArmRecord& row) const {
    const auto found = requests.find(row.arm_id);
    return found == requests.end() ? "" : found->second;
  }
};

/// Returns whether the bytes that the cell needs on this worker (Worker::bytes_needed()) fit into `available` bytes,
/// less a margin for what allocators and matrix libraries keep for themselves.
bool fits(const Worker& worker, const CellRecord& cell, std::int64_t available);

/// Holds the reference's outputs of one cell under one request, which the first get() reads from what an earlier run
/// kept, or computes.
class ReferenceOutputs {
 public:
  /// Prepares the outputs of `cell`. Where the reference does not fit into the available memory, get() halves the batch
  /// and then the length until it does. `workers` and `available_memory_bytes` must outlive this object.
  ReferenceOutputs(const CellRecord& cell, std::string request, const ArmWorkers& workers,
                   const std::function<std::int64_t()>& available_memory_bytes)
      : workers_(workers),
        available_memory_bytes_(available_memory_bytes),
        compared_(cell),
        request_(std::move(request)) {}

  /// Returns the outputs. Throws std::runtime_error where there are none; the message is the reason for the rows of the
  /// arms that cannot be verified.
  const OutputTrace& get();
  /// Returns the outputs of the reference in float32 where it is fed the tokens of get(); the first call computes them.
  /// Null where there is no such reference, it does not fit, or it fails; and in a decode cell whose keys are random,
  /// since float32 has others there: random keys are rounded to the type of the cache.
  const OutputTrace* exact();
  /// Returns the cell that the outputs of get() belong to, smaller than the one asked for where the reference did not
  /// fit.
  const CellRecord& compared() const { return compared_; }
  /// Returns the record that is kept of a check of the cell, with the outputs' tokens and no arm's choices yet; throws
  /// as get() does.
  CellProofRecord proof();

 private:
  OutputTrace compute();

  const ArmWorkers& workers_;
  const std::function<std::int64_t()>& available_memory_bytes_;
  CellRecord compared_;
  std::string request_;
  std::optional<OutputTrace> outputs_;
  bool exact_tried_ = false;
  std::optional<OutputTrace> exact_;
  std::string none_;  ///< Why there are no outputs.
};

/// Compares one arm with the reference's outputs in full. When they agree, leaves the row open and keeps the arm's
/// choices in `proof`; otherwise makes the row `incorrect`.
void verify(CellArmRecord& row, Worker& worker, ReferenceOutputs& reference, CellProofRecord& proof);

/// Compares what each open arm of a cell chooses in this process with what it chose when it was verified. Returns the
/// rows and updates `proofs`, of which there is one for each request.
///
/// This compares a quarter of the steps of a visit, at least one and no more than were verified: what is done in every
/// launch must not take as long as its timed steps. An arm that chooses otherwise is compared with the reference in
/// full, since two processes may round differently; so is every arm whose request has no proof. An arm that throws or
/// is wrong gets the status that says so.
std::vector<CellArmRecord> recheck_cell(const CellRecord& cell, std::vector<CellArmRecord> rows,
                                        std::vector<CellProofRecord>& proofs, const ArmWorkers& workers,
                                        const std::function<std::int64_t()>& available_memory_bytes);

/// Returns the row of an arm that threw `error` in a cell, with the first line of the message as its reason. The status
/// is that of a WorkerError, else `oom` where memory ran out, else `failed`.
CellArmRecord row_of_exception(CellArmRecord row, const std::exception& error);

}  // namespace decodelab
