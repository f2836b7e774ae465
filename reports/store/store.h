// One SQLite file of runs: written a block at a time, read by everything that reports.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

#include "reports/store/record.h"

namespace decodelab {

/// How a store is opened. `read` never creates a file and changes nothing; `write` creates it when it is not there.
enum class StoreAccess { read, write };

/// SQLite failed: the disk is full, the file is damaged, somebody else holds it. The message names the file.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The store of runs: STRICT tables, WAL, foreign keys, `user_version` migrations, samples as little-endian int64
/// blobs.
///
/// Every function throws StoreError when SQLite fails. Opening throws std::invalid_argument when the
/// file is missing (read), cannot be created (write), is no store, or was written by a newer schema than
/// kSchemaVersion. Several processes may write to one store: writers wait for each other up to a minute.
class Store {
 public:
  static constexpr int kSchemaVersion = 11;

  Store(const std::filesystem::path& path, StoreAccess access);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Adds a run with its cells, arms and one `planned` row (or the given status) per cell and arm, in one transaction.
  /// Fills the ids and the uuid in; `cell_arms[i].cell_id` and `.arm_id` are on entry indices into `cells` and `arms`,
  /// ids on return.
  void add_run(RunData& data);

  /// Sets what became of one arm in one cell, its counters included.
  void update_cell_arm(const CellArmRecord& row);
  /// Keeps what a worker said of itself (`engine`, `version`, `settings`) on its arm. Throws std::invalid_argument
  /// where the run holds something else already: one arm is one engine.
  void identify_arm(const ArmRecord& arm);
  /// Fixes the number of timed steps of a cell, and of a slice, before its first block.
  void set_steps(std::int64_t cell_id, std::int64_t steps, std::int64_t slice_steps);
  /// Fixes the blocks of each launch of a run that was planned with kFittedBlocks.
  void set_blocks_per_launch(std::int64_t run_id, std::int64_t blocks);
  /// Reduces the launches of a run below the planned number. Throws std::invalid_argument where a block of a later
  /// launch is there already.
  void set_launches(std::int64_t run_id, std::int64_t launches);
  /// Adds the time of each record to what its launch has spent on its arm and activity so far.
  void add_times_spent(std::int64_t run_id, const std::vector<TimeSpentRecord>& times);
  /// Returns the sum of the times that were added for a launch.
  std::int64_t time_spent_ns(std::int64_t run_id, std::int64_t launch) const;
  /// Keeps what the reference put out in a cell and what arms chose there; replaces what was kept of that cell.
  void save_proof(const CellProofRecord& proof);
  /// Keeps what arms say to their run's prompts; replaces what was kept of the same arm and prompt.
  void save_completions(const std::vector<CompletionRecord>& completions);
  /// Keeps what an arm predicts of a text; replaces what was kept of it.
  void save_quality(const QualityRecord& quality);
  /// Adds one block with its visits and samples in one transaction; all or nothing. A second block of the same (launch,
  /// block, cell) is refused.
  void add_block(std::int64_t run_id, const BlockRecord& block);
  /// Keeps the account of a trace, all or nothing; one of the same arm in the same cell is replaced. Blocks and traces
  /// come in any order, before and after the run's end. Throws std::invalid_argument where the run has no such cell and
  /// arm, where a share is named twice, and where a perturbation is not finite.
  void save_trace(std::int64_t run_id, const TraceRecord& trace);
  /// Marks a run as finished.
  void end_run(std::int64_t run_id, std::int64_t ended_unix_ns);

  /// Returns the run that `selector` names: an id, a name (the newest of that name), `latest`, `latest~n`. Throws
  /// std::invalid_argument with the names that exist when there is none.
  std::int64_t find_run(std::string_view selector) const;
  RunRecord load_run_record(std::int64_t run_id) const;
  RunData load_run(std::int64_t run_id) const;
  /// Returns the run without its blocks, which hold nearly all the bytes.
  RunData load_plan(std::int64_t run_id) const;
  /// Returns the (launch, block, cell id) triples that the store has already, for `--resume`.
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> finished_blocks(std::int64_t run_id) const;
  std::vector<RunRecord> list_runs() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What `[STORE@]RUN[:ARM]` names. A run's name holds no `@` and no `:`; arms may hold `:`.
struct RunSelector {
  std::filesystem::path store;
  std::string run;  ///< For Store::find_run().
  std::string arm;  ///< Empty where none is named.
};
/// Reads a selector; where it names no store, `store` is `default_store`. Throws std::invalid_argument where a part is
/// empty.
RunSelector parse_run_selector(std::string_view text, const std::filesystem::path& default_store);

}  // namespace decodelab
