// Runs one launch of a sweep: checks the cells that were not checked yet, then runs the blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "bench/measure/cell_check.h"
#include "bench/measure/quality.h"
#include "bench/measure/worker.h"
#include "bench/plan/sweep_plan.h"
#include "reports/store/store.h"

namespace decodelab {

/// A piece of a launch that is timed as a whole for the progress display.
struct LaunchPiece {
  std::string kind;       ///< check, recheck or block.
  std::int64_t cell = 0;  ///< Index of the cell in its run.
  /// Set by a check: the seconds that a block of its cell should take; 0: it will have none.
  double block_seconds = 0;
};

/// What a launch needs from outside; all of it can be replaced in a test.
struct LaunchContext {
  /// Makes the worker of an arm of the run, or of the reference where that is no arm and has the id 0. What it throws
  /// becomes the reason in the rows of that arm.
  std::function<std::unique_ptr<Worker>(const ArmRecord& arm)> make_worker;
  /// Makes the worker of the reference in float32 under a request where the run is in a 16-bit type; may be empty.
  std::function<std::unique_ptr<Worker>(const std::string& request)> make_exact{};
  std::function<std::int64_t()> available_memory_bytes;
  std::function<void(const LaunchPiece&)> piece_started;
  std::function<void(const LaunchPiece&, double seconds)> piece_done;
  /// Called before an arm runs, so that its row can be marked should the process die; 0: the reference, where it is no
  /// arm of the run.
  std::function<void(std::int64_t arm_id)> arm_started;
  std::function<bool()> stop_requested;  ///< Called between pieces; true ends the launch before the next one.
  /// Returns the time that this process has spent on loading and packing so far; may be empty.
  std::function<SideWork()> side_work{};
  /// The reference's outputs of earlier runs; null: none are kept.
  std::shared_ptr<const KeptOutputs> kept_outputs{};
  VisitPlan visits{};
  QualityPlan quality{};
  /// Most seconds that a launch should take where its blocks are kFittedBlocks; at least one block is run, whatever it
  /// takes.
  double fitted_seconds = std::numeric_limits<double>::infinity();
};

/// Returns what the plan of a run asks of its visits.
VisitPlan visit_plan(const LaunchPlan& plan, const RunRecord& run);

/// How a launch ended.
enum class LaunchEnd { complete, stopped };

/// Steps whose outputs are compared with the reference before an arm is timed.
inline constexpr std::int64_t kVerifiedPrefillSteps = 4;
inline constexpr std::int64_t kVerifiedDecodeSteps = 8;

/// Share of the memory (available, or held by workers) that all workers together may hold; beyond it they are started
/// for each visit anew, and their rows carry kRestartedFlag.
inline constexpr double kWorkerMemory = 0.6;

/// How many times longer the blocks of a launch should take than the start of its workers, where they are
/// kFittedBlocks, and the most blocks. More rounds pay off beside a load that comes and goes ten times a second: gate
/// blocks of 1 or 2, 4 and 8 blocks a launch had spreads of 3.3 to 6.5, 1.9 to 3.0 and 1.4 %, and took 3.3, 6 and 10 s.
inline constexpr double kRoundsPerStart = 2;
inline constexpr std::int64_t kMostFittedBlocks = 8;

/// Runs launch `launch` (from 0) of a run that the store holds, and skips the checks and blocks that are stored
/// already.
///
/// Starts the processes of workers before the first block, in an order that rotates with the launch. Where every arm is
/// a worker, the baseline is the reference: two builds are compared with each other. Workers that together hold more
/// than kWorkerMemory of the machine's memory are started for each visit anew, and their rows carry the flag
/// `restarted-each-visit`.
///
/// An arm that cannot be made (its weights do not fit) has the reason in all its rows. Where that arm is the reference,
/// the others cannot be verified, and their rows say so.
///
/// Checks every cell once a run, before any block. An arm whose closed-form bytes exceed the available memory becomes
/// `oom` without being tried. The outputs of every other arm are compared with the reference's (`causal` under the same
/// request), and a wrong arm becomes `incorrect`; one that throws becomes `oom` or `failed`, with the reason. Where the
/// reference itself does not fit, the batch and then the length are halved until it does, and the rows carry the flag
/// `verified-at-bN-lM`. Then the slowest arm fixes the number of steps.
///
/// Keeps with the run what the reference and the arms chose. A later launch makes no reference: before a cell's first
/// block it compares the choices of each arm with those that it was verified with, and only an arm that chooses
/// otherwise is compared with the reference again.
///
/// In a block all arms of the first half of the order open their visits, and run in slices of the cell's `slice_steps`
/// until their steps are timed: in this order, then reversed, and so on, so that a drift affects all of them alike. In
/// phase continue they take turns of one round instead, the arm that is the furthest behind next.
/// Then those of the second half do the same. Blocks go round-robin over the cells; an arm that throws in a block loses
/// its further visits, and the other arms keep theirs.
///
/// Keeps the time that the launch spent on each arm. In the run of a shard, only the shard's cells are checked and
/// measured; the rows of the others stay `planned`. The first launch of a run whose blocks are kFittedBlocks fixes them
/// for all launches: as many rounds as take kRoundsPerStart times as long as the start of the workers,
/// kMostFittedBlocks at most, and no more than fit into the context's `fitted_seconds` after the start and the checks.
LaunchEnd run_launch(Store& store, std::int64_t run_id, std::int64_t launch, const LaunchContext& context);

}  // namespace decodelab
