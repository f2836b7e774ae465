// What one launch of a sweep does: check cells that nobody checked yet, then run its blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "bench/measure/cell_check.h"
#include "bench/measure/worker.h"
#include "bench/plan/sweep_plan.h"
#include "reports/store/store.h"

namespace decodelab {

/// A piece of a launch that is timed as a whole for the progress display.
struct LaunchPiece {
  std::string kind;          ///< check, recheck or block.
  std::int64_t cell = 0;     ///< Index of the cell in its run.
  double block_seconds = 0;  ///< What a check that is done expects a block of its cell to take; 0: it will have none.
};

/// What a launch needs from outside; all of it can be replaced in a test.
struct LaunchContext {
  /// For an arm of the run, or for the reference, which then is no arm and has the id 0. What it throws becomes the
  /// rows of that arm.
  std::function<std::unique_ptr<Worker>(const ArmRecord& arm)> make_worker;
  std::function<std::int64_t()> available_memory_bytes;
  std::function<void(const LaunchPiece&)> piece_started;
  std::function<void(const LaunchPiece&, double seconds)> piece_done;
  std::function<void(std::int64_t arm_id)>
      arm_started;  ///< What runs now, should the process die of it; 0: the oracle, which is no arm of the run.
  std::function<bool()> stop_requested;  ///< Asked between pieces; the one in hand is finished first.
  /// What this process has loaded and packed until now; may be empty.
  std::function<SideWork()> side_work{};
  /// The reference's outputs of earlier runs; null: none are kept.
  std::shared_ptr<const KeptOutputs> kept_outputs{};
  VisitPlan visits{};
  /// What a launch shall take at most, where its blocks are kFittedBlocks; one block is the fewest, whatever it takes.
  double fitted_seconds = std::numeric_limits<double>::infinity();
};

/// What the plan of a run asks of its visits.
VisitPlan visit_plan(const LaunchPlan& plan, const RunRecord& run);

/// How a launch ended.
enum class LaunchEnd { complete, stopped };

/// Steps whose outputs are compared with the reference before an arm is timed.
inline constexpr std::int64_t kVerifiedPrefillSteps = 4;
inline constexpr std::int64_t kVerifiedDecodeSteps = 8;

/// Share of the memory that workers may hold together before they are started for each visit anew, and the flag of
/// their rows then.
inline constexpr double kWorkerMemory = 0.6;
inline constexpr const char* kRestartedFlag = "restarted-each-visit";

/// Beside a load that comes and goes ten times a second more rounds pay twice: gate blocks of 1 or 2, 4 and 8 blocks a
/// launch had spreads of 3.3 to 6.5, 1.9 to 3.0 and 1.4 %, and took 3.3, 6 and 10 s.
inline constexpr double kRoundsPerStart = 2;
inline constexpr std::int64_t kMostFittedBlocks = 8;

/// Runs launch `launch` (from 0) of a run that the store holds, skipping what it already holds.
///
/// Processes of workers are started before the first block, in an order that turns with the launch. Where every arm is
/// a worker, the baseline is the reference: two builds are held against each other. Workers that together hold more
/// than kWorkerMemory of the machine's memory are started for each visit anew, and their rows carry the flag
/// `restarted-each-visit`.
///
/// An arm that cannot be made (its weights do not fit) has that for a reason in all its rows. Where it is the
/// reference, nothing proves the others right, and theirs say so.
///
/// Every cell is checked once a run, before any block: each arm whose closed-form bytes exceed the memory at hand
/// becomes `oom` without being tried; each other arm's outputs are compared with the reference (`causal`), and a wrong
/// one becomes `incorrect`; what throws becomes `oom` or `failed`, with the reason. Where the reference itself does not
/// fit, the comparison is made at the largest half of the batch, then of the length, that does, and the rows carry the
/// flag `verified-at-bN-lM`. Then the steps are fixed by the slowest arm. In a block all arms of the first half of the
/// order open their visits, and run in slices of the cell's `slice_steps` until their steps are timed: forth, back,
/// forth, so that a drift meets all of them alike. Then those of the second half do. What the reference and the arms
/// chose is kept with the run. A later launch makes no reference: before a cell's first block it holds what each arm
/// chooses against what that arm was proved right with, and compares it anew with the reference where it chooses
/// otherwise. What the launch spent on each arm is kept too. Of the run of a shard only the shard's cells are checked
/// and measured; the rows of the others stay `planned`. Of a run whose blocks are kFittedBlocks, its first launch fixes
/// them for all: as many rounds as take kRoundsPerStart times as long as the start of the workers, kMostFittedBlocks at
/// most, and no more than fit into the context's `fitted_seconds`. Blocks go round-robin over the cells; an arm that
/// throws in a block loses its further visits, never those of the others.
LaunchEnd run_launch(Store& store, std::int64_t run_id, std::int64_t launch, const LaunchContext& context);

}  // namespace decodelab
