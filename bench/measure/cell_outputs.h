// Holds the outputs of a cell's arms against the reference's: in full once a run, by the digest of their choices in
// every later launch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/kept_outputs.h"
#include "bench/measure/worker.h"
#include "reports/store/record.h"

namespace decodelab {

/// The flag of another engine's row that showed no logits: only its tokens were held against the reference's.
inline constexpr const char* kTokensOnlyFlag = "tokens-only";

/// The arms of a launch, ready to run.
struct ArmWorkers {
  std::map<std::int64_t, Worker*> by_arm;  ///< By the arm's id, of those that run in some cell; borrowed.
  /// The oracle, made when it is first asked for, which may be one of the arms. Throws std::runtime_error where there
  /// is none, and says why.
  std::function<Worker*()> reference;
  std::int64_t reference_arm = 0;                    ///< Its id, or 0 where it is no arm.
  std::function<void(std::int64_t arm_id)> started;  ///< Told before an arm runs.
  TimeAccount* account = nullptr;                    ///< Of the launch.
  const KeptOutputs* kept = nullptr;                 ///< The reference's outputs of earlier runs; may be null.
};

/// Whether the cell's need in closed form fits into the memory at hand.
bool fits(const Worker& worker, const CellRecord& cell, std::int64_t available);

/// The reference's outputs of one cell: those that an earlier run kept, or computed when they are first asked for.
class ReferenceOutputs {
 public:
  /// Of `cell`, or of the largest one by halving the batch and then the length in which the reference fits into the
  /// memory at hand. What it is made with must outlive it.
  ReferenceOutputs(const CellRecord& cell, const ArmWorkers& workers,
                   const std::function<std::int64_t()>& available_memory_bytes)
      : workers_(workers), available_memory_bytes_(available_memory_bytes), compared_(cell) {}

  /// Throws std::runtime_error, with the sentence for the rows that nothing proves right, where there are none.
  const OutputTrace& get();
  /// The cell that get() compared in.
  const CellRecord& compared() const { return compared_; }

 private:
  OutputTrace compute();

  const ArmWorkers& workers_;
  const std::function<std::int64_t()>& available_memory_bytes_;
  CellRecord compared_;
  std::optional<OutputTrace> outputs_;
  std::string none_;  ///< Why there are none.
};

/// What is kept of a check of `cell`, without any arm yet.
CellProofRecord proof_of(const CellRecord& cell, const CellRecord& compared, const OutputTrace& expected);

/// Compares one arm with the reference's outputs in full. Leaves the row open when they agree, and keeps the arm's
/// choices in `proof`.
void verify(CellArmRecord& row, Worker& worker, const CellRecord& compared, OutputTrace expected,
            CellProofRecord& proof);

/// Holds what each open arm of a cell chooses in this process against what it chose when it was proved right.
///
/// An arm that chooses otherwise is compared with the reference in full, since two processes may round differently; so
/// is every arm where `proof` is empty. It does so for as many steps as a quarter of a visit, at least one: what is
/// done in every launch must not take as long as its timed steps. One that throws, or is wrong, gets that for a status.
/// Returns the rows; `proof` is brought up to date.
std::vector<CellArmRecord> recheck_cell(const CellRecord& cell, std::vector<CellArmRecord> rows,
                                        std::optional<CellProofRecord>& proof, const ArmWorkers& workers,
                                        const std::function<std::int64_t()>& available_memory_bytes);

/// The row of an arm that threw `error` in a cell: `oom` where memory ran out, else `failed`, with the first line of
/// the message.
CellArmRecord row_of_exception(CellArmRecord row, const std::exception& error);

}  // namespace decodelab
