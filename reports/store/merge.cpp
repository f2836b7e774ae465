// Runs of other stores into one store, by uuid, and shards into the run of their plan.
#include "reports/store/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/store/read_rows.h"
#include "reports/store/shard.h"
#include "reports/store/statement.h"
#include "reports/store/store_file.h"
#include "reports/store/write_rows.h"

namespace decodelab {
namespace {

using Ids = std::unordered_map<std::int64_t, std::int64_t>;

std::string run_name(const RunRecord& run) {
  return run.name.empty() ? run.uuid : fmt::format("'{}' ({})", run.name, run.uuid);
}

std::string cell_name(const CellRecord& cell) {
  return fmt::format("{} batch {} length {}", to_string(cell.phase), cell.batch, cell.length);
}

RunData read_whole(SQLite::Database& database, RunRecord run) {
  RunData data = read_plan(database, std::move(run));
  data.blocks = read_blocks(database, data.run.id);
  return data;
}

std::optional<RunRecord> find_by_uuid(SQLite::Database& database, const std::string& uuid) {
  auto row = prepared(database, "SELECT id FROM runs WHERE uuid = ?", uuid);
  return row.executeStep() ? read_run(database, row.getColumn(0).getInt64()) : std::nullopt;
}

/// Writes what a merge may change in the run's own row.
void update_run(SQLite::Database& database, const RunRecord& run) {
  execute(database,
          "UPDATE runs SET uuid = ?, command = ?, plan_json = ?, started_unix_ns = ?, ended_unix_ns = ? WHERE id = ?",
          run.uuid, run.command, run.plan_json, run.started_unix_ns, run.ended_unix_ns, run.id);
}

/// How far the fate of a row is decided: a planned one may become ok, and an ok one may die in a later launch.
int rank(RowStatus status) { return status == RowStatus::planned ? 0 : status == RowStatus::ok ? 1 : 2; }

/// One run of a source on its way into the target.
class RunMerge {
 public:
  RunMerge(SQLite::Database& database, RunData source, std::string source_name, MergeReport& report)
      : database_(database), source_(std::move(source)), source_name_(std::move(source_name)), report_(report) {}

  void run() {
    make_merged(source_);
    auto there = find_by_uuid(database_, source_.run.uuid);
    if (!there) {
      insert();
      ++report_.added;
      return;
    }
    target_ = read_plan(database_, *std::move(there));
    if (plan_hash(target_) != plan_hash(source_)) {
      contradiction("its plan", "one of the stores was changed by hand");
    }
    map_ids();
    bool changed = unite_arms();
    changed = unite_steps() || changed;
    changed = unite_rows() || changed;
    changed = unite_blocks() || changed;
    changed = unite_traces() || changed;
    changed = unite_times_spent() || changed;
    changed = unite_proofs() || changed;
    const auto prompt_of = [](const CompletionRecord& one) { return std::pair(one.arm_id, one.prompt); };
    const auto arm_of = [](const QualityRecord& one) { return one.arm_id; };
    changed = unite_records(target_.completions, source_.completions, prompt_of, replace_completion) || changed;
    changed = unite_records(target_.qualities, source_.qualities, arm_of, replace_quality) || changed;
    changed = unite_ends() || changed;
    ++(changed ? report_.united : report_.unchanged);
  }

 private:
  [[noreturn]] void contradiction(const std::string& what, const std::string& how) const {
    throw std::invalid_argument(
        fmt::format("Run {}: {} in '{}' contradicts what was merged before ({}); nothing was changed. Merge only "
                    "stores of one sweep: two "
                    "sweeps of the same plan need different --name, or a store each.",
                    run_name(source_.run), what, source_name_, how));
  }

  void insert() {
    RunRecord& run = source_.run;
    insert_run(database_, run);
    for (const CellRecord& cell : source_.cells) {
      cells_[cell.id] = insert_cell(database_, run.id, cell);
    }
    for (const ArmRecord& arm : source_.arms) {
      arms_[arm.id] = insert_arm(database_, run.id, arm);
    }
    for (const CellArmRecord& row : source_.cell_arms) {
      insert_cell_arm(database_, moved(row));
    }
    for (const BlockRecord& block : source_.blocks) {
      insert_block(database_, run.id, moved(block));
    }
    for (const TraceRecord& trace : source_.traces) {
      replace_trace(database_, moved(trace));
    }
    for (const TimeSpentRecord& time : source_.times_spent) {
      add_time_spent(database_, run.id, moved(time));
    }
    for (const CellProofRecord& proof : source_.proofs) {
      replace_proof(database_, moved(proof));
    }
    for (const CompletionRecord& completion : source_.completions) {
      replace_completion(database_, moved(completion));
    }
    for (const QualityRecord& quality : source_.qualities) {
      replace_quality(database_, moved(quality));
    }
    report_.blocks += std::ssize(source_.blocks);
  }

  /// Maps ids by place: equal plans have the same cells and arms in the same order.
  void map_ids() {
    for (std::size_t i = 0; i < source_.cells.size(); ++i) {
      cells_[source_.cells[i].id] = target_.cells[i].id;
    }
    for (std::size_t i = 0; i < source_.arms.size(); ++i) {
      arms_[source_.arms[i].id] = target_.arms[i].id;
    }
  }

  CellArmRecord moved(CellArmRecord row) const {
    row.cell_id = cells_.at(row.cell_id);
    row.arm_id = arms_.at(row.arm_id);
    return row;
  }

  CompletionRecord moved(CompletionRecord completion) const {
    completion.arm_id = arms_.at(completion.arm_id);
    return completion;
  }

  QualityRecord moved(QualityRecord quality) const {
    quality.arm_id = arms_.at(quality.arm_id);
    return quality;
  }

  TraceRecord moved(TraceRecord trace) const {
    trace.cell_id = cells_.at(trace.cell_id);
    trace.arm_id = arms_.at(trace.arm_id);
    return trace;
  }

  TimeSpentRecord moved(TimeSpentRecord time) const {
    if (time.arm_id != 0) {
      time.arm_id = arms_.at(time.arm_id);
    }
    return time;
  }

  CellProofRecord moved(const CellProofRecord& source) const {
    CellProofRecord proof = source;
    proof.cell_id = cells_.at(source.cell_id);
    proof.chosen.clear();
    for (const auto& [arm_id, chosen] : source.chosen) {
      proof.chosen[arms_.at(arm_id)] = chosen;
    }
    return proof;
  }

  BlockRecord moved(BlockRecord block) const {
    block.cell_id = cells_.at(block.cell_id);
    for (VisitRecord& visit : block.visits) {
      visit.arm_id = arms_.at(visit.arm_id);
      if (visit.previous_arm_id != 0) {
        visit.previous_arm_id = arms_.at(visit.previous_arm_id);
      }
    }
    return block;
  }

  /// Copies what workers reported about themselves.
  bool unite_arms() {
    const auto said = [](const ArmRecord& arm) { return std::tie(arm.engine, arm.version, arm.settings); };
    bool changed = false;
    for (std::size_t i = 0; i < source_.arms.size(); ++i) {
      const ArmRecord& here = target_.arms[i];
      const ArmRecord& there = source_.arms[i];
      if (there.engine.empty() || said(here) == said(there)) {
        continue;
      }
      if (!here.engine.empty()) {
        contradiction(fmt::format("arm {}", there.label),
                      fmt::format("the worker is {} {} {} and was {} {} {}", there.engine, there.version,
                                  there.settings, here.engine, here.version, here.settings));
      }
      execute(database_, "UPDATE arms SET engine = ?, version = ?, settings = ? WHERE id = ?", there.engine,
              there.version, there.settings, here.id);
      changed = true;
    }
    return changed;
  }

  bool unite_steps() {
    bool changed = false;
    for (std::size_t i = 0; i < source_.cells.size(); ++i) {
      const CellRecord& here = target_.cells[i];
      const CellRecord& there = source_.cells[i];
      if (there.steps == 0 || (here.steps == there.steps && here.slice_steps == there.slice_steps)) {
        continue;
      }
      if (here.steps != 0) {
        contradiction(fmt::format("the cell {}", cell_name(there)),
                      fmt::format("{} timed steps in turns of {} against {} in turns of {}", there.steps,
                                  there.slice_steps, here.steps, here.slice_steps));
      }
      execute(database_, "UPDATE cells SET steps = ?, turn_steps = ? WHERE id = ?", there.steps, there.slice_steps,
              here.id);
      changed = true;
    }
    return changed;
  }

  bool unite_rows() {
    std::map<std::pair<std::int64_t, std::int64_t>, const CellArmRecord*> here;
    for (const CellArmRecord& row : target_.cell_arms) {
      here[{row.cell_id, row.arm_id}] = &row;
    }
    bool changed = false;
    for (const CellArmRecord& source_row : source_.cell_arms) {
      CellArmRecord row = moved(source_row);
      const CellArmRecord& old = *here.at({row.cell_id, row.arm_id});
      if (row == old || rank(row.status) < rank(old.status) || row.status == RowStatus::planned) {
        continue;
      }
      // Launches add flags to rows of cells that were checked before.
      CellArmRecord flagged = old;
      flagged.flags = row.flags;
      if (flagged == row) {
        row.flags = old.flags;
        for (const std::string& flag : flagged.flags) {
          if (std::ranges::find(row.flags, flag) == row.flags.end()) {
            row.flags.push_back(flag);
          }
        }
        if (row == old) {
          continue;
        }
      } else if (rank(row.status) == rank(old.status)) {
        contradiction(
            fmt::format("arm {} in the cell {}", label_of(source_row.arm_id), cell_name(cell_of(source_row.cell_id))),
            row.status == old.status ? fmt::format("two different rows '{}'", to_string(row.status))
                                     : fmt::format("'{}' against '{}'", to_string(row.status), to_string(old.status)));
      }
      update_cell_arm(database_, row);
      changed = true;
    }
    return changed;
  }

  bool unite_blocks() {
    bool changed = false;
    for (const BlockRecord& source_block : source_.blocks) {
      const BlockRecord block = moved(source_block);
      const auto old = read_block(database_, target_.run.id, block.launch, block.block, block.cell_id);
      if (!old) {
        insert_block(database_, target_.run.id, block);
        ++report_.blocks;
        changed = true;
      } else if (*old != block) {
        contradiction(fmt::format("block {} of launch {} in the cell {}", block.block, block.launch,
                                  cell_name(cell_of(source_block.cell_id))),
                      "another block was measured in the same place");
      }
    }
    return changed;
  }

  bool unite_traces() {
    std::map<std::pair<std::int64_t, std::int64_t>, const TraceRecord*> here;
    for (const TraceRecord& trace : target_.traces) {
      here[{trace.cell_id, trace.arm_id}] = &trace;
    }
    bool changed = false;
    for (const TraceRecord& source_trace : source_.traces) {
      const TraceRecord trace = moved(source_trace);
      const auto old = here.find({trace.cell_id, trace.arm_id});
      if (old == here.end()) {
        replace_trace(database_, trace);
        changed = true;
      } else if (*old->second != trace) {
        report_.notices.push_back(fmt::format(
            "Run {}: the trace of arm {} in the cell {} in '{}' is another one than the target's, which stays.",
            run_name(source_.run), label_of(source_trace.arm_id), cell_name(cell_of(source_trace.cell_id)),
            source_name_));
      }
    }
    return changed;
  }

  /// Times only grow while a shard is measured: the larger ones are the later.
  bool unite_times_spent() {
    const auto place = [](const TimeSpentRecord& time) {
      return std::tuple(time.shard, time.launch, time.arm_id, time.activity);
    };
    std::map<decltype(place(TimeSpentRecord())), std::int64_t> here;
    for (const TimeSpentRecord& time : target_.times_spent) {
      here[place(time)] = time.ns;
    }
    bool changed = false;
    for (const TimeSpentRecord& source_time : source_.times_spent) {
      TimeSpentRecord time = moved(source_time);
      time.ns -= here[place(time)];
      if (time.ns <= 0) {
        continue;
      }
      add_time_spent(database_, target_.run.id, time);
      changed = true;
    }
    return changed;
  }

  /// Keeps those of `added` of whose key the target has none.
  template <typename Record, typename Key>
  bool unite_records(const std::vector<Record>& there, const std::vector<Record>& added, const Key& key,
                     void (*keep)(SQLite::Database&, const Record&)) {
    std::set<decltype(key(added.front()))> here;
    for (const Record& record : there) {
      here.insert(key(record));
    }
    bool changed = false;
    for (const Record& record : added) {
      const Record mine = moved(record);
      if (here.insert(key(mine)).second) {
        keep(database_, mine);
        changed = true;
      }
    }
    return changed;
  }

  /// Keeps the target's own proofs: a launch whose choices differ from a proof compares them with the reference anew.
  bool unite_proofs() {
    std::set<std::pair<std::int64_t, std::string>> here;
    for (const CellProofRecord& proof : target_.proofs) {
      here.emplace(proof.cell_id, proof.request);
    }
    bool changed = false;
    for (const CellProofRecord& source_proof : source_.proofs) {
      const CellProofRecord proof = moved(source_proof);
      if (here.contains({proof.cell_id, proof.request})) {
        continue;
      }
      replace_proof(database_, proof);
      changed = true;
    }
    return changed;
  }

  /// Updates when the run began and ended, and which shards it consists of.
  bool unite_ends() {
    RunRecord run = target_.run;
    run.started_unix_ns = std::min(run.started_unix_ns, source_.run.started_unix_ns);
    run.ended_unix_ns = std::max(run.ended_unix_ns, source_.run.ended_unix_ns);
    MergedShards shards = merged_shards(run);
    for (const auto& [shard, ended_unix_ns] : merged_shards(source_.run)) {
      std::int64_t& end = shards[shard];
      end = std::max(end, ended_unix_ns);
    }
    if (shards != merged_shards(run)) {
      set_merged_shards(run, shards, target_.cells.size());
    }
    if (run.started_unix_ns == target_.run.started_unix_ns && run.ended_unix_ns == target_.run.ended_unix_ns &&
        run.plan_json == target_.run.plan_json) {
      return false;
    }
    update_run(database_, run);
    return true;
  }

  const CellRecord& cell_of(std::int64_t id) const { return *std::ranges::find(source_.cells, id, &CellRecord::id); }
  const std::string& label_of(std::int64_t arm_id) const {
    return std::ranges::find(source_.arms, arm_id, &ArmRecord::id)->label;
  }

  SQLite::Database& database_;
  RunData source_;
  std::string source_name_;
  MergeReport& report_;
  RunData target_;
  Ids cells_;  ///< Ids of the source to ids of the target.
  Ids arms_;
};

/// The first shard of a plan in the target becomes the merged run and keeps its id; the others are moved into it.
void unite_own_shards(SQLite::Database& database, const std::string& target_name, MergeReport& report) {
  for (const RunRecord& run : read_runs(database)) {
    const auto shard = shard_of(run);
    if (!shard) {
      continue;
    }
    if (run.ended_unix_ns == 0) {
      report.notices.push_back(fmt::format(
          "Run {} of '{}' is shard {} of a plan and is not finished, so it was left alone: finish it with --resume.",
          run.id, target_name, to_string(*shard)));
      continue;
    }
    RunData merged = read_plan(database, run);
    make_merged(merged);
    if (!find_by_uuid(database, merged.run.uuid)) {
      update_run(database, merged.run);
      continue;
    }
    RunData whole = read_whole(database, run);
    execute(database, "DELETE FROM runs WHERE id = ?", run.id);
    RunMerge(database, std::move(whole), target_name, report).run();
  }
}

std::string place_name(const RunData& data) {
  const MachineRecord& machine = data.run.machine;
  return fmt::format("{}, {} cores, {:.1f} GB, {}{}{}, {} threads, build {}", machine.cpu, machine.cores,
                     static_cast<double>(machine.memory_bytes) / 1e9, machine.os,
                     machine.accelerator.empty() ? "" : ", ", machine.accelerator,
                     data.cells.empty() ? 0 : data.cells.front().threads, data.run.build.commit);
}

/// Says which merged runs are not whole, and which are of the same plan but stay apart.
void add_notices(SQLite::Database& database, MergeReport& report) {
  std::map<std::string, std::vector<std::string>> places_by_plan;
  for (const RunRecord& run : read_runs(database)) {
    const MergedShards shards = merged_shards(run);
    if (shards.empty()) {
      continue;
    }
    const RunData data = read_plan(database, run);
    places_by_plan[plan_hash(data)].push_back(fmt::format("run {} on {}", run.id, place_name(data)));
    if (covers(shards, data.cells.size()) || run.ended_unix_ns != 0) {
      continue;
    }
    std::vector<std::string> present;
    for (const auto& [shard, ended_unix_ns] : shards) {
      present.push_back(shard + (ended_unix_ns == 0 ? " (not finished)" : ""));
    }
    report.notices.push_back(fmt::format("Run {} is not whole: it has shard {}; the rows of the others stay planned.",
                                         run.id, fmt::join(present, ", ")));
  }
  for (const auto& [hash, places] : places_by_plan) {
    if (places.size() < 2) {
      continue;
    }
    report.notices.push_back(fmt::format(
        "Shards of one plan were measured in different places and stay runs of their own, since no figure may mix "
        "machines: {}.",
        fmt::join(places, "; ")));
  }
}

}  // namespace

MergeReport merge_stores(const std::filesystem::path& target, const std::vector<std::filesystem::path>& sources) {
  std::vector<StoreFile> opened;
  for (const std::filesystem::path& source : sources) {
    std::error_code ignored;
    if (std::filesystem::equivalent(source, target, ignored)) {
      throw std::invalid_argument(
          fmt::format("The source '{}' is the target itself; name other stores.", source.string()));
    }
    opened.emplace_back(source, StoreAccess::read);
  }
  MergeReport report;
  StoreFile file(target, StoreAccess::write);
  file.write([&](SQLite::Database& database) {
    unite_own_shards(database, target.string(), report);
    for (StoreFile& source : opened) {
      for (const RunRecord& run : source.read([](SQLite::Database& from) { return read_runs(from); })) {
        RunData data = source.read([&](SQLite::Database& from) { return read_whole(from, *read_run(from, run.id)); });
        RunMerge(database, std::move(data), source.path().string(), report).run();
      }
    }
    add_notices(database, report);
  });
  return report;
}

}  // namespace decodelab
