// The file of a store: what is refused, what is left alone, and that it survives a kill and several writers.
#include "reports/store/store_file.h"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/store/migrations.h"
#include "reports/store/store.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;
using testing::planned_run;
using testing::sample_run;
using testing::SampleOptions;
using testing::TemporaryFolder;

const SampleOptions kWholeRun{.phases = {Phase::decode},
                              .batches = {1, 4},
                              .lengths = {64, 128},
                              .arms = {{"causal"}, {"bigcode", 0.7}},
                              .launches = 2,
                              .steps = 8};

// Puts a whole run into a store; the ids of a first run are those of sample_run().
void add_sample(Store& store) {
  const RunData sample = sample_run(kWholeRun);
  RunData data = planned_run(kWholeRun);
  store.add_run(data);
  for (const CellArmRecord& row : sample.cell_arms) {
    store.update_cell_arm(row);
  }
  for (const BlockRecord& block : sample.blocks) {
    store.add_block(data.run.id, block);
  }
}

TEST(StoreFile, RefusesAStoreOfANewerSchema) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  {
    Store store(path, StoreAccess::write);
  }
  SQLite::Database((path).string(), SQLite::OPEN_READWRITE)
      .exec(fmt::format("PRAGMA user_version = {}", Store::kSchemaVersion + 1));
  for (const StoreAccess access : {StoreAccess::read, StoreAccess::write}) {
    EXPECT_TRUE(contains(message_of([&] { Store(path, access); }),
                         {"a.sqlite", fmt::format("schema {}", Store::kSchemaVersion + 1),
                          fmt::format("up to {}", Store::kSchemaVersion), "--store"}));
  }
}

TEST(StoreFile, RefusesAFileThatIsNotSqliteAndLeavesItAsItWas) {
  const TemporaryFolder folder;
  const auto path = folder / "notes.txt";
  const std::string content(5000, 'x');
  std::ofstream(path) << content;
  for (const StoreAccess access : {StoreAccess::read, StoreAccess::write}) {
    EXPECT_TRUE(contains(message_of([&] { Store(path, access); }), {"notes.txt", "no decodelab store"}));
  }
  EXPECT_EQ(testing::read_file(path), content);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"notes.txt"});
}

TEST(StoreFile, RefusesAnSqliteFileOfAnotherProgram) {
  const TemporaryFolder folder;
  const auto path = folder / "other.sqlite";
  SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE t (x)");
  for (const StoreAccess access : {StoreAccess::read, StoreAccess::write}) {
    EXPECT_TRUE(contains(message_of([&] { Store(path, access); }), {"other.sqlite", "no decodelab store"}));
  }
}

TEST(StoreFile, NamesAPathThatCannotBeWrittenAndCreatesNothing) {
  const TemporaryFolder folder;
  EXPECT_TRUE(
      contains(message_of([&] { Store(folder / "absent/a.sqlite", StoreAccess::write); }), {"absent/a.sqlite"}));
  EXPECT_TRUE(contains(message_of([&] { Store("/proc/a.sqlite", StoreAccess::write); }), {"/proc/a.sqlite"}));
  EXPECT_TRUE(contains(message_of([&] { Store(folder.path(), StoreAccess::write); }), {"not a regular file"}));
  EXPECT_TRUE(folder.names().empty());
}

TEST(StoreFile, NamesAMissingFileWhenReadingAndCreatesNothing) {
  const TemporaryFolder folder;
  EXPECT_TRUE(
      contains(message_of([&] { Store(folder / "a.sqlite", StoreAccess::read); }), {"a.sqlite", "does not exist"}));
  EXPECT_TRUE(folder.names().empty());
}

TEST(StoreFile, LeavesNoFileBesideTheStoreWhenItOnlyReads) {
  const TemporaryFolder folder;
  const auto path = folder / "a #?%41.sqlite";
  {
    Store store(path, StoreAccess::write);
    add_sample(store);
  }
  const Store store(path, StoreAccess::read);
  EXPECT_EQ(store.load_run(1).blocks.size(), 16U);
  EXPECT_EQ(store.list_runs().size(), 1U);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a #?%41.sqlite"});
}

TEST(StoreFile, RefusesToWriteThroughAReader) {
  const TemporaryFolder folder;
  {
    Store store(folder / "a.sqlite", StoreAccess::write);
  }
  Store store(folder / "a.sqlite", StoreAccess::read);
  RunData data = planned_run(kWholeRun);
  EXPECT_THROW(store.add_run(data), std::runtime_error);
}

TEST(StoreFile, ShowsAReaderWhatAWriterAddedSinceItOpened) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  {
    Store store(path, StoreAccess::write);
  }
  const Store reader(path, StoreAccess::read);
  EXPECT_TRUE(reader.list_runs().empty());
  Store writer(path, StoreAccess::write);
  RunData data = planned_run(kWholeRun);
  writer.add_run(data);
  EXPECT_EQ(reader.list_runs().size(), 1U);
  writer.add_block(1, {.cell_id = 1, .visits = {}});
  EXPECT_EQ(reader.finished_blocks(1).size(), 1U);
}

TEST(StoreFile, IsReadableAfterItsWriterWasKilled) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  {
    Store store(path, StoreAccess::write);
    RunData data = planned_run(kWholeRun);
    store.add_run(data);
  }
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Store store(path, StoreAccess::write);
    for (std::int64_t block = 0;; ++block) {
      BlockRecord record{.block = block, .cell_id = 1 + block % 4, .visits = {}};
      for (std::int64_t p = 0; p < 4; ++p) {
        record.visits.push_back(
            {.arm_id = 1 + p % 2, .position = p, .samples_ns = std::vector<std::int64_t>(4096, block)});
      }
      store.add_block(1, record);
      if (write(ready[1], "x", 1) != 1) {
        _exit(1);
      }
    }
  }
  char byte = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(read(ready[0], &byte, 1), 1);  // well inside of its work
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);

  {
    const Store reader(path, StoreAccess::read);
    const RunData data = reader.load_run(1);
    EXPECT_GE(data.blocks.size(), 20U);
    for (const BlockRecord& block : data.blocks) {
      ASSERT_EQ(block.visits.size(), 4U);
      for (const VisitRecord& visit : block.visits) {
        EXPECT_EQ(visit.samples_ns, std::vector<std::int64_t>(4096, block.block));
      }
    }
  }
  Store writer(path, StoreAccess::write);
  const std::size_t before = writer.finished_blocks(1).size();
  writer.add_block(1, {.launch = 1, .cell_id = 1, .visits = {}});
  EXPECT_EQ(writer.finished_blocks(1).size(), before + 1);
  EXPECT_EQ(SQLite::Database(path.string()).execAndGet("PRAGMA integrity_check").getString(), "ok");
}

TEST(StoreFile, LetsSeveralProcessesCreateAndFillIt) {
  const TemporaryFolder folder;
  const auto path = folder / "a.sqlite";
  constexpr int kWriters = 4;
  constexpr std::int64_t kBlocks = 15;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        Store store(path, StoreAccess::write);
        RunData data = planned_run(kWholeRun);
        store.add_run(data);
        for (std::int64_t b = 0; b < kBlocks; ++b) {
          store.add_block(
              data.run.id,
              {.block = b, .cell_id = data.cells[0].id, .visits = {{.arm_id = data.arms[0].id, .samples_ns = {b}}}});
        }
      } catch (const std::exception& error) {
        std::fprintf(stderr, "writer %d: %s\n", writer, error.what());
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const Store store(path, StoreAccess::read);
  const auto runs = store.list_runs();
  ASSERT_EQ(runs.size(), std::size_t{kWriters});
  for (const RunRecord& run : runs) {
    EXPECT_EQ(store.load_run(run.id).blocks.size(), std::size_t{kBlocks});
  }
}

TEST(StoreFile, ReadsAndMigratesEveryOlderSchema) {
  for (int schema = 1; schema < Store::kSchemaVersion; ++schema) {
    const TemporaryFolder folder;
    const auto path = folder / "old.sqlite";
    {
      SQLite::Database old(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      for (int step = 0; step < schema; ++step) {
        old.exec(migration_steps()[static_cast<std::size_t>(step)]);
      }
      old.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kStoreApplicationId, schema));
      old.exec("INSERT INTO builds VALUES (1, 'c', 'g++', 'Release', '2', '')");
      old.exec("INSERT INTO machines VALUES (1, 'cpu', 2, 1, 'avx2', 'os', '')");
      old.exec("INSERT INTO models VALUES (1, 'm', 'gpt_bigcode', 1, 64, 1)");
      old.exec("INSERT INTO runs VALUES (1, 'u', 'before', 'cmd', '{}', 1, 1, 1, 5, 6, 0, 1, 1, 1)");
      old.exec(
          "INSERT INTO cells (id, run_id, phase, batch, length, dtype, device, threads, scope, fill, steps) "
          "VALUES (1, 1, 'decode', 1, 8, 'fp32', 'cpu', 2, 'step', 'random', 8)");
      old.exec("INSERT INTO arms (id, run_id, label, baseline) VALUES (1, 1, 'causal', 1)");
      old.exec(
          "INSERT INTO cell_arms (cell_id, arm_id, status, reason, peak_bytes, ties, flags) "
          "VALUES (1, 1, 'ok', '', 7, 0, '[]')");
    }
    const std::string before = testing::read_file(path);
    const auto check = [&](const Store& store) {
      const RunData data = store.load_run(store.find_run("before"));
      ASSERT_EQ(data.cell_arms.size(), 1U) << schema;
      EXPECT_EQ(data.cell_arms[0].peak_bytes, 7);
      EXPECT_TRUE(data.cell_arms[0].counters.empty());
      EXPECT_FALSE(data.cell_arms[0].agreement);
      EXPECT_TRUE(data.traces.empty());
      EXPECT_TRUE(data.times_spent.empty());
      EXPECT_TRUE(data.proofs.empty());
      EXPECT_TRUE(data.completions.empty());
    };
    check(Store(path, StoreAccess::read));
    EXPECT_EQ(testing::read_file(path), before) << "a reader changes nothing";
    check(Store(path, StoreAccess::write));
    EXPECT_EQ(SQLite::Database(path.string()).execAndGet("PRAGMA user_version").getInt(), Store::kSchemaVersion);
  }
}

TEST(StoreFile, HasOneMigrationStepPerSchemaAndOnlyStrictTables) {
  EXPECT_EQ(migration_steps().size(), static_cast<std::size_t>(Store::kSchemaVersion));
  const TemporaryFolder folder;
  {
    Store store(folder / "a.sqlite", StoreAccess::write);
  }
  SQLite::Database raw((folder / "a.sqlite").string());
  EXPECT_EQ(raw.execAndGet("SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND name "
                           "NOT LIKE 'sqlite%' AND NOT strict")
                .getInt(),
            0);
  EXPECT_EQ(raw.execAndGet("PRAGMA journal_mode").getString(), "wal");
  EXPECT_EQ(raw.execAndGet("PRAGMA application_id").getInt(), kStoreApplicationId);
}

}  // namespace
}  // namespace decodelab
