// Records as rows of the store's tables; each function is one part of a transaction of its caller.
#pragma once

#include <cstdint>

#include <SQLiteCpp/SQLiteCpp.h>

#include "reports/store/record.h"

namespace decodelab {

/// Adds a run with its build, machine and model, and fills in its id, and a random uuid where it has none.
void insert_run(SQLite::Database& database, RunRecord& run);
/// Both return the id of the new row.
std::int64_t insert_cell(SQLite::Database& database, std::int64_t run_id, const CellRecord& cell);
std::int64_t insert_arm(SQLite::Database& database, std::int64_t run_id, const ArmRecord& arm);

/// These add and change what became of an arm in a cell, its counters included. The second returns false where there is
/// no row to change.
void insert_cell_arm(SQLite::Database& database, const CellArmRecord& row);
bool update_cell_arm(SQLite::Database& database, const CellArmRecord& row);

/// Adds a block with its visits.
void insert_block(SQLite::Database& database, std::int64_t run_id, const BlockRecord& block);

/// Adds the account of a trace; replaces one of the same arm in the same cell.
void replace_trace(SQLite::Database& database, const TraceRecord& trace);

/// Adds the time to the stored time of the same shard, launch, arm and activity.
void add_time_spent(SQLite::Database& database, std::int64_t run_id, const TimeSpentRecord& time);

/// Adds the proof of a cell; replaces one that the store has.
void replace_proof(SQLite::Database& database, const CellProofRecord& proof);
void replace_quality(SQLite::Database& database, const QualityRecord& quality);
void replace_completion(SQLite::Database& database, const CompletionRecord& completion);

}  // namespace decodelab
