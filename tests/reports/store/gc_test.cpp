// Removing runs: what goes, what stays, and that what stays is the same to the last byte.
#include "reports/store/gc.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reports/page/exports/json.h"
#include "reports/page/exports/trace_data.h"
#include "reports/store/store.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"
#include "tests/reports/sample_trace.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;
using testing::planned_run;
using testing::sample_run;
using testing::sample_trace;
using testing::SampleOptions;
using testing::TemporaryFolder;

const SampleOptions kCollected{.phases = {Phase::decode},
                               .batches = {1},
                               .lengths = {64, 128},
                               .arms = {{"causal"}, {"bigcode", 0.7}},
                               .launches = 2,
                               .steps = 512,
                               .with_failures = false};

/// Runs 1 to 5, one minute apart; run 3 is not finished, and run 1 was measured by another build.
void fill(const std::filesystem::path& path) {
  Store store(path, StoreAccess::write);
  for (std::int64_t id = 1; id <= 5; ++id) {
    RunData data = planned_run(kCollected);
    data.run.name = fmt::format("run-{}", id);
    data.run.started_unix_ns += id * 60'000'000'000;
    data.run.ended_unix_ns = id == 3 ? 0 : data.run.ended_unix_ns;
    if (id == 1) {
      data.run.build.commit = "old";
    }
    store.add_run(data);
    for (CellArmRecord row : data.cell_arms) {
      row.counters = {{"operators", id}};
      store.update_cell_arm(row);
    }
    store.save_trace(data.run.id, sample_trace(data.cells[0].id, data.arms[1].id));
    for (BlockRecord block : sample_run(kCollected).blocks) {
      block.cell_id = data.cells[static_cast<std::size_t>(block.cell_id - 1)].id;
      for (VisitRecord& visit : block.visits) {
        visit.arm_id = data.arms[static_cast<std::size_t>(visit.arm_id - 1)].id;
        if (visit.previous_arm_id != 0) {
          visit.previous_arm_id = data.arms[static_cast<std::size_t>(visit.previous_arm_id - 1)].id;
        }
      }
      store.add_block(data.run.id, block);
    }
  }
}

/// A run with its samples, byte for byte.
std::string content(const std::filesystem::path& path, std::int64_t run_id) {
  const Store store(path, StoreAccess::read);
  const RunData data = store.load_run(run_id);
  SQLite::Database raw(path.string());
  SQLite::Statement row(raw,
                        "SELECT hex(samples_ns) FROM visits JOIN blocks ON blocks.id = block_id WHERE run_id = ? ORDER "
                        "BY block_id, position");
  row.bind(1, run_id);
  std::string text = to_csv(summarize(data)) + blocks_to_csv(data) + traces_to_csv(data);
  while (row.executeStep()) {
    text += row.getColumn(0).getString();
  }
  return text;
}

std::vector<std::int64_t> ids(const std::filesystem::path& path) {
  std::vector<std::int64_t> result;
  for (const RunRecord& run : Store(path, StoreAccess::read).list_runs()) {
    result.push_back(run.id);
  }
  return result;
}

std::int64_t count(const std::filesystem::path& path, const std::string& table) {
  return SQLite::Database(path.string()).execAndGet("SELECT count(*) FROM " + table).getInt64();
}

std::vector<std::int64_t> ids(const GcReport& report) {
  std::vector<std::int64_t> result;
  for (const GcReport::Removed& removed : report.removed) {
    result.push_back(removed.run.id);
  }
  return result;
}

using Ids = std::vector<std::int64_t>;

TEST(Gc, KeepsTheNewestFinishedRunsByteForByteAndMakesTheFileSmaller) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  fill(path);
  const std::string unfinished = content(path, 3);
  const std::string newest = content(path, 5);
  const GcReport report = collect_garbage(path, {.keep = 1});
  EXPECT_EQ(ids(report), (Ids{1, 2, 4}));
  EXPECT_EQ(ids(path), (Ids{3, 5}));
  EXPECT_EQ(report.kept, 2);
  EXPECT_EQ(report.unfinished_kept, 1);
  EXPECT_EQ(report.removed[0].blocks, 8);
  EXPECT_EQ(report.removed[0].sample_bytes, 8 * 4 * 512 * 8);
  EXPECT_LT(report.bytes_after, report.bytes_before / 2);
  EXPECT_EQ(report.not_vacuumed, "");
  EXPECT_EQ(content(path, 3), unfinished);
  EXPECT_EQ(content(path, 5), newest);
  EXPECT_EQ(SQLite::Database(path.string()).execAndGet("PRAGMA integrity_check").getString(), "ok");
}

TEST(Gc, LeavesNothingOfARunBehind) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  fill(path);
  EXPECT_EQ(count(path, "builds"), 2);
  collect_garbage(path, {.runs = {"run-1"}});
  EXPECT_EQ(count(path, "builds"), 1) << "no run names the old build any more";
  collect_garbage(path, {.keep = 0, .runs = {"3"}});
  for (const char* table :
       {"runs", "cells", "arms", "cell_arms", "counters", "blocks", "visits", "traces", "trace_shares", "times_spent",
        "cell_proofs", "arm_proofs", "completions", "qualities", "builds", "machines", "models"}) {
    EXPECT_EQ(count(path, table), 0) << table;
  }
}

TEST(Gc, RemovesNamedRunsEvenUnfinishedOnesAndGivesNoIdAgain) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  fill(path);
  EXPECT_EQ(ids(collect_garbage(path, {.runs = {"run-3", "latest", "5"}})), (Ids{3, 5}));
  EXPECT_EQ(ids(path), (Ids{1, 2, 4}));
  RunData data = planned_run(kCollected);
  Store(path, StoreAccess::write).add_run(data);
  EXPECT_EQ(data.run.id, 6);
}

TEST(Gc, ChangesNothingInADryRun) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  fill(path);
  const std::string before = testing::read_file(path);
  EXPECT_EQ(ids(collect_garbage(path, {.keep = 3, .dry_run = true})), Ids{1});
  EXPECT_EQ(testing::read_file(path), before);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.sqlite"});
}

TEST(Gc, RefusesARunThatIsNotThereAndRemovesNoOther) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  fill(path);
  EXPECT_TRUE(contains(message_of([&] { collect_garbage(path, {.runs = {"run-1", "run-9"}}); }), {"run-9", "run-5"}));
  EXPECT_TRUE(contains(message_of([&] { collect_garbage(path, {.keep = -1}); }), {"--keep -1"}));
  EXPECT_TRUE(contains(message_of([&] { collect_garbage(folder / "absent", {.keep = 1}); }), {"does not exist"}));
  EXPECT_EQ(ids(path).size(), 5U);
}

TEST(Gc, WorksBesideAnOpenReaderAndAWriter) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  fill(path);
  const Store reader(path, StoreAccess::read);
  Store writer(path, StoreAccess::write);
  const std::string kept = content(path, 5);
  EXPECT_EQ(ids(collect_garbage(path, {.keep = 1})), (Ids{1, 2, 4}));
  EXPECT_EQ(reader.list_runs().size(), 2U);
  RunData data = planned_run(kCollected);
  writer.add_run(data);
  EXPECT_EQ(ids(path), (Ids{data.run.id, 3, 5}));
  EXPECT_EQ(content(path, 5), kept);
}

}  // namespace
}  // namespace decodelab
