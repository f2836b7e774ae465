// Rows of the store's tables as records.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

#include "reports/store/record.h"

namespace decodelab {

/// Returns all runs with build, machine and model, oldest first.
std::vector<RunRecord> read_runs(SQLite::Database& database);
std::optional<RunRecord> read_run(SQLite::Database& database, std::int64_t run_id);

/// These return what belongs to a run, in the order in which it was planned or ran.
std::vector<CellRecord> read_cells(SQLite::Database& database, std::int64_t run_id);
std::vector<ArmRecord> read_arms(SQLite::Database& database, std::int64_t run_id);
std::vector<CellArmRecord> read_cell_arms(SQLite::Database& database, std::int64_t run_id);
/// Returns the traces with their shares, sorted by cell and arm.
std::vector<TraceRecord> read_traces(SQLite::Database& database, std::int64_t run_id);
/// Returns the times sorted by launch, arm and activity.
std::vector<TimeSpentRecord> read_times_spent(SQLite::Database& database, std::int64_t run_id);
std::vector<CellProofRecord> read_proofs(SQLite::Database& database, std::int64_t run_id);
std::vector<QualityRecord> read_qualities(SQLite::Database& database, std::int64_t run_id);
std::vector<CompletionRecord> read_completions(SQLite::Database& database, std::int64_t run_id);
std::vector<BlockRecord> read_blocks(SQLite::Database& database, std::int64_t run_id);
/// Returns the run with everything that belongs to it except its blocks.
RunData read_plan(SQLite::Database& database, RunRecord run);
/// Returns the block at that place in a run; none where it was not measured.
std::optional<BlockRecord> read_block(SQLite::Database& database, std::int64_t run_id, std::int64_t launch,
                                      std::int64_t block, std::int64_t cell_id);

}  // namespace decodelab
