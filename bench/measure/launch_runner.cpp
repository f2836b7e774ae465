// Checks the cells of a run once, then runs one launch's blocks and stores each as it ends.
#include "bench/measure/launch_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/machine/environment.h"
#include "bench/measure/block_order.h"
#include "bench/measure/external_arm.h"
#include "bench/measure/steps.h"
#include "bench/measure/turns.h"
#include "bench/plan/arm_request.h"
#include "reports/store/flags.h"
#include "reports/store/shard.h"

namespace decodelab {
namespace {

/// The arm that every other is checked against.
const std::string kReferenceArm = "causal";

class LaunchRunner {
 public:
  LaunchRunner(Store& store, std::int64_t run_id, std::int64_t launch, const LaunchContext& context)
      : store_(store),
        context_(context),
        launch_(launch),
        data_(store.load_plan(run_id)),
        shard_(shard_of(data_.run).value_or(Shard())),
        finished_(store.finished_blocks(run_id)),
        no_engine_(all_external(data_.arms)) {
    for (const ArmRecord& arm : data_.arms) {
      if (!runs_anywhere(arm)) {
        continue;
      }
      try {
        owned_.push_back(make_worker(arm));
      } catch (const StoreError&) {
        throw;
      } catch (const std::exception& error) {
        rule_out(arm, error);
        continue;
      }
      workers_.by_arm[arm.id] = owned_.back().get();
      const std::string held_to = owned_.back()->held_to();
      const std::string& request = workers_.requests[arm.id] = (held_to.empty() ? "" : "," + held_to) + request_of(arm);
      if (no_engine_ ? arm.baseline : arm.command.empty() && arm.label == kReferenceArm + request) {
        references_[request] = {.worker = owned_.back().get(), .arm = arm.id};
      }
    }
    workers_.started = context.arm_started;
    workers_.reference = [this](const std::string& request) { return reference(request); };
    workers_.exact = no_engine_ ? nullptr : context.make_exact;
    workers_.account = &account_;
    workers_.kept = no_engine_ ? nullptr : context.kept_outputs.get();
  }

  ~LaunchRunner() {
    std::ranges::for_each(owned_, [](const auto& worker) { worker->begin_end(); });
  }
  LaunchRunner(const LaunchRunner&) = delete;
  LaunchRunner& operator=(const LaunchRunner&) = delete;

  LaunchEnd run() {
    const auto begun = Clock::now();
    start_workers();
    const Clock::duration start_took = Clock::now() - begun;
    if (!check_cells() || !recheck_cells()) {
      return LaunchEnd::stopped;
    }
    keep_qualities(store_, data_, workers_, context_.quality);
    const auto rounds_start = Clock::now();
    for (std::int64_t block = 0; block == 0 || block < data_.run.blocks_per_launch; ++block) {
      for (std::size_t cell = 0; cell < data_.cells.size(); ++cell) {
        if (!is_left(data_.cells[cell], block)) {
          continue;
        }
        if (context_.stop_requested()) {
          return LaunchEnd::stopped;
        }
        timed("block", cell, [&] {
          run_block(data_.cells[cell], block);
          return 0.0;
        });
      }
      if (data_.run.blocks_per_launch == kFittedBlocks) {
        fit_blocks(start_took, rounds_start - begun, Clock::now() - rounds_start);
      }
    }
    return LaunchEnd::complete;
  }

  void keep_times() { store_.add_times_spent(data_.run.id, account_.records(shard_name(data_.run), launch_)); }

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  std::unique_ptr<Worker> make_worker(const ArmRecord& arm) {
    const TimeSpan span(account_, arm.id, Activity::loading, context_.side_work);
    return context_.make_worker(arm);
  }

  /// Returns what an arm asks of each row.
  static std::string request_of(const ArmRecord& arm) { return std::string(request_part(arm.label)); }

  /// Returns the reference under a request, which the first call makes: a launch whose arms choose what they were
  /// verified with needs none.
  ReferenceArm reference(const std::string& request) {
    ReferenceArm& found = references_[request];
    std::string& none = no_reference_[request];
    if (found.worker == nullptr && none.empty()) {
      if (no_engine_) {
        none = "every arm is a worker, and the baseline, which they are compared with, runs nowhere under this request";
      } else {
        try {
          owned_.push_back(make_worker({.label = kReferenceArm + request}));
          found.worker = owned_.back().get();
        } catch (const StoreError&) {
          throw;
        } catch (const std::exception& error) {
          none = error.what();
        }
      }
    }
    if (found.worker == nullptr) {
      throw std::runtime_error(none);
    }
    return found;
  }

  bool is_left(const CellRecord& cell, std::int64_t block) const {
    return cell.steps > 0 && !finished_.contains({launch_, block, cell.id});
  }

  /// Fixes the blocks of a launch by what this one took: to start the workers, before its rounds in all, and for one
  /// round. Later launches check less; that leaves time for what they spend on ending their workers.
  void fit_blocks(Seconds start, Seconds before, Seconds round) {
    const double wanted = std::ceil(kRoundsPerStart * start / round);
    const double fitting = std::floor((Seconds(context_.fitted_seconds) - before) / round);
    const auto most = static_cast<double>(kMostFittedBlocks);
    data_.run.blocks_per_launch = static_cast<std::int64_t>(std::clamp(std::min(wanted, fitting), 1.0, most));
    store_.set_blocks_per_launch(data_.run.id, data_.run.blocks_per_launch);
  }

  /// Returns whether an arm has an open row. An arm that the plan or an earlier launch ruled out in every cell gets no
  /// worker: its variants may even exclude each other.
  bool runs_anywhere(const ArmRecord& arm) const {
    return std::ranges::any_of(
        data_.cell_arms, [&arm](const CellArmRecord& row) { return row.arm_id == arm.id && is_open(row.status); });
  }

  /// Closes the open rows of an arm whose worker cannot be made, with the error as the reason.
  void rule_out(const ArmRecord& arm, const std::exception& error) {
    for (CellArmRecord& row : data_.cell_arms) {
      if (row.arm_id == arm.id && is_open(row.status)) {
        update(row, row_of_exception(row, error));
      }
    }
  }

  /// `work` returns the seconds that a block of the cell is expected to take, where it found that out.
  template <typename Work>
  void timed(const char* kind, std::size_t cell, Work&& work) {
    LaunchPiece piece{.kind = kind, .cell = static_cast<std::int64_t>(cell), .block_seconds = 0};
    context_.piece_started(piece);
    const auto start = std::chrono::steady_clock::now();
    piece.block_seconds = work();
    context_.piece_done(piece, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  /// Starts all workers. One that cannot start throws again when its first cell is checked or visited, and gets its
  /// rows then.
  void start_workers() {
    std::vector<std::pair<std::int64_t, Worker*>> order;  // with the arm's id
    for (std::size_t index = 0; index < data_.arms.size(); ++index) {
      const std::size_t turned = (index + static_cast<std::size_t>(launch_)) % data_.arms.size();
      const auto worker = workers_.by_arm.find(data_.arms[turned].id);
      if (worker != workers_.by_arm.end()) {
        order.emplace_back(*worker);
      }
    }
    const auto attempt = [&](void (Worker::*call)()) {
      for (const auto& [arm_id, worker] : order) {
        const TimeSpan span(account_, arm_id, Activity::starting, [worker] { return worker->side_work(); });
        try {
          (worker->*call)();
        } catch (const std::exception&) {
          continue;
        }
      }
    };
    attempt(&Worker::begin_start);
    attempt(&Worker::start);
    std::int64_t held = 0;
    for (const auto& [arm_id, worker] : order) {
      held += worker->resident_bytes();
    }
    if (static_cast<double>(held) > kWorkerMemory * static_cast<double>(context_.available_memory_bytes() + held)) {
      std::ranges::for_each(owned_, [](const auto& worker) { worker->leave_between_calls(); });
      flag_external_rows(kRestartedFlag);
    }
  }

  void flag_external_rows(const char* name) {
    for (CellArmRecord& row : data_.cell_arms) {
      if (!std::ranges::find(data_.arms, row.arm_id, &ArmRecord::id)->command.empty()) {
        add_flag(row, name);
      }
    }
  }

  void add_flag(CellArmRecord& row, const std::string& name) {
    if (std::ranges::find(row.flags, name) == row.flags.end()) {
      CellArmRecord flagged = row;
      flagged.flags.push_back(name);
      update(row, flagged);
    }
  }

  double external_cpu_seconds() const {
    double seconds = 0;
    for (const auto& worker : owned_) {
      seconds += worker->cpu_seconds();
    }
    return seconds;
  }

  std::vector<CellArmRecord*> rows_of(const CellRecord& cell) {
    std::vector<CellArmRecord*> rows;
    for (CellArmRecord& row : data_.cell_arms) {
      if (row.cell_id == cell.id) {
        rows.push_back(&row);
      }
    }
    return rows;
  }

  void update(CellArmRecord& row, const CellArmRecord& changed) {
    row = changed;
    store_.update_cell_arm(row);
  }

  /// Checks the cells, the largest first: they tell most about the time that the whole sweep will take. Returns false
  /// where a stop was requested.
  bool check_cells() {
    std::vector<std::size_t> order(data_.cells.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t index) {
      const CellRecord& cell = data_.cells[index];
      return cell.batch * (begins_with_keys(cell.phase) ? 1 : cell.length);
    });
    for (const std::size_t index : order) {
      CellRecord& cell = data_.cells[index];
      const std::vector<CellArmRecord*> rows = rows_of(cell);
      // A cell that was never checked has no steps, and so no blocks either.
      if (cell.steps > 0 || !shard_.has(index) ||
          std::ranges::none_of(rows, [](const CellArmRecord* row) { return row->status == RowStatus::planned; })) {
        continue;
      }
      if (context_.stop_requested()) {
        return false;
      }
      timed("check", index, [&] { return check(cell, rows); });
      checked_.insert(cell.id);
    }
    return true;
  }

  /// Rechecks the cells that an earlier process checked and that have blocks left in this launch. Returns false where a
  /// stop was requested.
  bool recheck_cells() {
    for (std::size_t index = 0; index < data_.cells.size(); ++index) {
      const CellRecord& cell = data_.cells[index];
      bool left = is_left(cell, 0);  // where the blocks are not fitted yet, there will be one
      for (std::int64_t block = 1; block < data_.run.blocks_per_launch; ++block) {
        left = left || is_left(cell, block);
      }
      if (!left || checked_.contains(cell.id)) {
        continue;
      }
      if (context_.stop_requested()) {
        return false;
      }
      timed("recheck", index, [&] {
        recheck(cell);
        return 0.0;
      });
    }
    return true;
  }

  void recheck(const CellRecord& cell) {
    const std::vector<CellArmRecord*> rows = rows_of(cell);
    std::vector<CellProofRecord> proofs;
    std::ranges::copy_if(data_.proofs, std::back_inserter(proofs),
                         [&](const CellProofRecord& proof) { return proof.cell_id == cell.id; });
    const std::vector<CellProofRecord> before = proofs;
    const std::vector<CellArmRecord> changed =
        recheck_cell(cell, copies_of(rows), proofs, workers_, context_.available_memory_bytes);
    for (std::size_t index = 0; index < rows.size(); ++index) {
      if (changed[index] == *rows[index]) {
        continue;
      }
      update(*rows[index], changed[index]);
      if (!is_open(rows[index]->status)) {
        CellArmRecord said = *rows[index];
        said.reason = fmt::format("in launch {}: {}", launch_ + 1, said.reason);
        update(*rows[index], said);
      }
    }
    for (const CellProofRecord& proof : proofs) {
      if (std::ranges::find(before, proof) == before.end()) {
        store_.save_proof(proof);
      }
    }
  }

  static std::vector<CellArmRecord> copies_of(const std::vector<CellArmRecord*>& rows) {
    std::vector<CellArmRecord> copies;
    for (const CellArmRecord* row : rows) {
      copies.push_back(*row);
    }
    return copies;
  }

  double check(CellRecord& cell, const std::vector<CellArmRecord*>& rows) {
    const CellCheck result = check_cell(cell, copies_of(rows), workers_, data_.run.model.positions,
                                        context_.available_memory_bytes, context_.visits);
    for (std::size_t index = 0; index < rows.size(); ++index) {
      update(*rows[index], result.rows[index]);
    }
    if (result.steps > 0) {
      cell.steps = result.steps;
      cell.slice_steps = result.slice_steps;
      store_.set_steps(cell.id, cell.steps, cell.slice_steps);
    }
    for (const CellProofRecord& proof : result.proofs) {
      store_.save_proof(proof);
    }
    return result.block_seconds;
  }

  /// Runs a block until it is whole; an arm that throws is given up and the block starts over without it.
  void run_block(const CellRecord& cell, std::int64_t block) {
    while (true) {
      std::vector<CellArmRecord*> active;
      for (CellArmRecord* row : rows_of(cell)) {
        if (is_open(row->status)) {
          active.push_back(row);
        }
      }
      if (active.empty() || try_block(cell, block, active)) {
        return;
      }
    }
  }

  bool try_block(const CellRecord& cell, std::int64_t block, const std::vector<CellArmRecord*>& active) {
    BlockRecord record{.launch = launch_,
                       .block = block,
                       .cell_id = cell.id,
                       .started_unix_ns = unix_ns(),
                       .other_cpu_share = 0,
                       .visits = {}};
    const std::vector<std::size_t> order = mirrored_order(
        active.size(), static_cast<std::uint64_t>(data_.run.seed), static_cast<std::uint64_t>(cell_index(cell)),
        static_cast<std::uint64_t>(launch_), static_cast<std::uint64_t>(block));
    const CpuClock others;
    const double external_before = external_cpu_seconds();
    const std::span<const std::size_t> all(order);
    const std::size_t together = cell.in_slices() || cell.in_rounds() ? active.size() : 1;
    for (std::size_t begin = 0; begin < all.size(); begin += together) {
      if (!visit_together(cell, active, all.subspan(begin, together), record)) {
        return false;
      }
    }
    record.other_cpu_share = others.other_share(external_cpu_seconds() - external_before);
    store_.add_block(data_.run.id, record);
    for (CellArmRecord* row : active) {
      if (row->status == RowStatus::planned) {
        CellArmRecord ok = *row;
        ok.status = RowStatus::ok;
        update(*row, ok);
      }
    }
    return true;
  }

  /// Opens a visit of each arm in `order`, runs the visits in slices or rounds, and adds them to the record. Returns
  /// false where an arm threw; its row then says why.
  bool visit_together(const CellRecord& cell, const std::vector<CellArmRecord*>& active,
                      std::span<const std::size_t> order, BlockRecord& record) {
    CellArmRecord* row = nullptr;
    try {
      std::vector<std::unique_ptr<OpenVisit>> visits;
      for (const std::size_t index : order) {
        row = active[index];
        context_.arm_started(row->arm_id);
        Worker& worker = *workers_.by_arm.at(row->arm_id);
        const TimeSpan span(account_, row->arm_id, Activity::warming, [&worker] { return worker.side_work(); });
        visits.push_back(worker.open_visit(cell));
      }
      const auto turn = [&](std::size_t place, auto&& timing) {
        row = active[order[place]];
        if (order.size() > 1) {
          context_.arm_started(row->arm_id);
        }
        account_for(*visits[place], row->arm_id, [&] { timing(*visits[place]); });
      };
      if (cell.in_rounds()) {
        take_turns_of_rounds(visits.size(), cell.steps, turn);
      } else {
        take_turns_of_slices(visits.size(), cell.steps, cell.in_slices() ? cell.slice_steps : cell.steps, turn);
      }
      for (std::size_t place = 0; place < order.size(); ++place) {
        row = active[order[place]];
        const std::int64_t previous = order.size() > 1 || record.visits.empty() ? 0 : record.visits.back().arm_id;
        const VisitTimes& times = visits[place]->times();
        std::ranges::for_each(times.flags, [&](const std::string& flag) { add_flag(*row, flag); });
        record.visits.push_back({.arm_id = row->arm_id,
                                 .position = static_cast<std::int64_t>(record.visits.size()),
                                 .previous_arm_id = previous,
                                 .warmup_steps = times.warmup_steps,
                                 .quiet = times.quiet,
                                 .wall_ns = times.wall_ns,
                                 .samples_ns = times.samples_ns});
      }
      return true;
    } catch (const std::exception& error) {
      update(*row, row_of_exception(*row, error));
      return false;
    }
  }

  /// Runs what is timed of a visit, and accounts for it. A worker that knows no slices warms up in its only slice.
  template <typename Timed>
  void account_for(const OpenVisit& visit, std::int64_t arm_id, Timed&& timed_part) {
    const Worker& worker = *workers_.by_arm.at(arm_id);
    const std::int64_t wall_before = visit.times().wall_ns;
    const std::int64_t warmup_before = visit.times().warmup_ns;
    TimeAccount slice;
    {
      const TimeSpan span(slice, arm_id, Activity::rest, [&worker] { return worker.side_work(); });
      timed_part();
    }
    const std::int64_t timing = visit.times().wall_ns - wall_before;
    const std::int64_t warming = visit.times().warmup_ns - warmup_before;
    account_.add(arm_id, Activity::timing, timing);
    account_.add(arm_id, Activity::warming, warming);
    for (const TimeSpentRecord& part : slice.records("", launch_)) {
      account_.add(arm_id, part.activity, part.activity == Activity::rest ? part.ns - timing - warming : part.ns);
    }
  }

  std::size_t cell_index(const CellRecord& cell) const { return static_cast<std::size_t>(&cell - data_.cells.data()); }

  Store& store_;
  const LaunchContext& context_;
  std::int64_t launch_;
  RunData data_;
  Shard shard_;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> finished_;
  bool no_engine_;
  std::vector<std::unique_ptr<Worker>> owned_;
  std::map<std::string, ReferenceArm> references_;   ///< By request.
  std::map<std::string, std::string> no_reference_;  ///< By request: why there is none, once that is known.
  ArmWorkers workers_;
  TimeAccount account_;
  std::set<std::int64_t> checked_;  ///< Ids of the cells that this process checked.
};

}  // namespace

VisitPlan visit_plan(const LaunchPlan& plan, const RunRecord& run) {
  return {.fewest_steps = plan.tail ? tail_steps(run.launches, run.blocks_per_launch) : 0, .slice_ns = plan.slice_ns};
}

LaunchEnd run_launch(Store& store, std::int64_t run_id, std::int64_t launch, const LaunchContext& context) {
  LaunchRunner runner(store, run_id, launch, context);
  const LaunchEnd end = runner.run();
  runner.keep_times();
  return end;
}

}  // namespace decodelab
