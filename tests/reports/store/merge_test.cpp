// Merging stores: runs by uuid, shards of one plan into one run, and refusals that change nothing.
#include "reports/store/merge.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/page/exports/json.h"
#include "reports/statistics/summary.h"
#include "reports/store/migrations.h"
#include "reports/store/shard.h"
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

const SampleOptions kMerged{.phases = {Phase::prefill, Phase::decode},
                            .batches = {1},
                            .lengths = {64, 128, 256},
                            .arms = {{"causal"}, {"bigcode", 0.7}},
                            .launches = 10,
                            .blocks = 1,
                            .steps = 8};

/// What a test changes in a run before it is stored; `data` has the ids and samples of sample_run().
using Change = void (*)(RunData& data);
void as_it_is(RunData&) {}

/// Stores what the sweep of a shard (empty: of the whole plan) leaves behind.
std::int64_t add(const std::filesystem::path& path, const std::string& shard, Change change = as_it_is) {
  RunData measured = sample_run(kMerged);
  if (!shard.empty()) {
    measured.run.plan_json = R"({"seed":1,"shard":")" + shard + "\"}";
    measured.run.command += " --shard " + shard;
  }
  const Shard part = shard_of(measured.run).value_or(Shard());
  const auto ours = [&](std::int64_t cell_id) { return part.has(static_cast<std::size_t>(cell_id - 1)); };
  std::erase_if(measured.blocks, [&](const BlockRecord& block) { return !ours(block.cell_id); });
  change(measured);

  RunData data = planned_run(kMerged);
  data.run = measured.run;
  if (!shard.empty()) {
    data.run.uuid = "";
  }
  for (CellRecord& cell : data.cells) {
    cell.steps = cell.slice_steps = 0;
  }
  Store store(path, StoreAccess::write);
  store.add_run(data);
  const auto here = [&](std::int64_t sample_id, const auto& rows) {
    return rows[static_cast<std::size_t>(sample_id - 1)].id;
  };
  for (CellArmRecord row : measured.cell_arms) {
    if (!ours(row.cell_id)) {
      continue;
    }
    store.set_steps(here(row.cell_id, data.cells), kMerged.steps, kMerged.steps);
    row.cell_id = here(row.cell_id, data.cells);
    row.arm_id = here(row.arm_id, data.arms);
    store.update_cell_arm(row);
  }
  for (BlockRecord block : measured.blocks) {
    block.cell_id = here(block.cell_id, data.cells);
    for (VisitRecord& visit : block.visits) {
      visit.arm_id = here(visit.arm_id, data.arms);
      if (visit.previous_arm_id != 0) {
        visit.previous_arm_id = here(visit.previous_arm_id, data.arms);
      }
    }
    store.add_block(data.run.id, block);
  }
  return data.run.id;
}

std::string rows_of(const std::filesystem::path& path, std::string_view run = "latest") {
  const Store store(path, StoreAccess::read);
  const RunSummary summary = summarize(store.load_run(store.find_run(run)));
  nlohmann::ordered_json rows = summary_to_json(summary);
  rows.erase("run");
  return json_text(rows, 1);
}

/// Everything in a store but what SQLite counts for itself.
std::string content(const std::filesystem::path& path) {
  const Store store(path, StoreAccess::read);
  std::string text;
  for (const RunRecord& run : store.list_runs()) {
    text += fmt::format("{} {} {} {} {}\n", run.id, run.uuid, run.plan_json, run.started_unix_ns, run.ended_unix_ns);
    text += to_csv(summarize(store.load_run(run.id))) + blocks_to_csv(store.load_run(run.id));
  }
  return text;
}

TEST(Merge, MakesOfAllShardsWhatTheWholeSweepWouldHaveBeen) {
  const TemporaryFolder folder;
  add(folder / "whole", "");
  for (const auto& order : {std::vector{"1/3", "2/3", "3/3"}, std::vector{"3/3", "1/3", "2/3"}}) {
    const TemporaryFolder shards;
    std::vector<std::filesystem::path> sources;
    for (const char* shard : order) {
      sources.push_back(shards / fmt::format("{}.sqlite", shard[0]));
      add(sources.back(), shard);
    }
    const MergeReport report = merge_stores(shards / "all", sources);
    EXPECT_EQ(report.added, 1);
    EXPECT_EQ(report.united, 2);
    EXPECT_TRUE(report.notices.empty());
    const Store store(shards / "all", StoreAccess::read);
    ASSERT_EQ(store.list_runs().size(), 1U);
    EXPECT_EQ(rows_of(shards / "all"), rows_of(folder / "whole"));
    EXPECT_NE(store.list_runs()[0].ended_unix_ns, 0);
    EXPECT_EQ(store.load_run(1).blocks.size(), sample_run(kMerged).blocks.size());
    EXPECT_EQ(store.list_runs()[0].command, sample_run(kMerged).run.command);
  }
}

TEST(Merge, GivesAVerdictOnlyOnceTheWholePlanIsThere) {
  const TemporaryFolder folder;
  add(folder / "1", "1/2");
  add(folder / "2", "2/2");
  EXPECT_TRUE(contains(rows_of(folder / "1"), {"\"status\": \"planned\"", "a part of the plan has not run"}));
  EXPECT_FALSE(contains(rows_of(folder / "1"), {"\"verdict\": \"FASTER\""}));
  const MergeReport half = merge_stores(folder / "all", {folder / "1"});
  ASSERT_EQ(half.notices.size(), 1U);
  EXPECT_TRUE(contains(half.notices[0], {"Run 1 is not whole", "1/2"}));
  EXPECT_TRUE(contains(rows_of(folder / "all"), {"\"status\": \"planned\"", "the run is not finished"}));
  EXPECT_TRUE(merge_stores(folder / "all", {folder / "2"}).notices.empty());
  EXPECT_TRUE(contains(rows_of(folder / "all"), {"\"verdict\": \"FASTER\""}));
  EXPECT_FALSE(contains(rows_of(folder / "all"), {"planned"}));
  EXPECT_FALSE(contains(rows_of(folder / "all"), {"has not run"}));
}

TEST(Merge, ChangesNothingTheSecondTime) {
  const TemporaryFolder folder;
  add(folder / "1", "1/2");
  add(folder / "2", "2/2");
  add(folder / "other", "");
  const std::vector sources{folder / "1", folder / "2", folder / "other"};
  merge_stores(folder / "all", sources);
  const std::string before = content(folder / "all");
  const MergeReport again = merge_stores(folder / "all", sources);
  EXPECT_EQ(again.added + again.united + again.blocks, 0);
  EXPECT_EQ(again.unchanged, 3);
  EXPECT_EQ(content(folder / "all"), before);
  const MergeReport onwards = merge_stores(folder / "onwards", {folder / "all", folder / "1"});
  EXPECT_EQ(onwards.added, 2);
  EXPECT_EQ(onwards.unchanged, 1) << "a shard of a merged run is known in its merge";
  EXPECT_EQ(rows_of(folder / "onwards"), rows_of(folder / "all"));
}

/// The rows of every table without their ids, sorted: what a merge must carry over to the last column.
std::map<std::string, std::vector<std::string>> dump(const std::filesystem::path& path) {
  SQLite::Database database(path.string());
  std::map<std::string, std::vector<std::string>> tables;
  SQLite::Statement table(database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
  while (table.executeStep()) {
    auto& rows = tables[table.getColumn(0).getString()];
    SQLite::Statement row(database, "SELECT * FROM " + table.getColumn(0).getString());
    while (row.executeStep()) {
      std::string text;
      for (int i = 0; i < row.getColumnCount(); ++i) {
        const std::string name = row.getColumnName(i);
        if (name != "id" && !name.ends_with("_id")) {
          text += name + "=" + row.getColumn(i).getString() + ";";
        }
      }
      rows.push_back(std::move(text));
    }
    std::ranges::sort(rows);
  }
  return tables;
}

TEST(Merge, CarriesEveryTableAndColumnOver) {
  const TemporaryFolder folder;
  add(folder / "a", "", [](RunData& data) { data.cell_arms[1].counters = {{"operators", 4}}; });
  {
    Store store(folder / "a", StoreAccess::write);
    store.save_trace(1, sample_trace(2, 1));
    store.save_proof(
        {.cell_id = 2, .batch = 1, .length = 64, .first = {4}, .tokens = {{3}, {5}}, .chosen = {{1, "digest"}}});
    store.add_times_spent(1, {{.launch = 1, .arm_id = 2, .activity = Activity::packing, .ns = 8}});
    store.save_completions({{.arm_id = 2,
                             .prompt = 1,
                             .prompt_text = "Once",
                             .prompt_class = "story",
                             .prompt_tokens = 1,
                             .token_ids = {4},
                             .text = " upon"}});
    store.save_quality({.arm_id = 2,
                        .tokens = 9,
                        .log_perplexity = 1,
                        .log_perplexity_error = 2,
                        .log_ratio = 3,
                        .log_ratio_error = 4,
                        .kl_divergence = 5,
                        .kl_divergence_error = 6,
                        .kl_divergence_999 = 7,
                        .top_1_agreement = 8,
                        .top_1_agreement_error = 9,
                        .rms_probability = 10,
                        .reason = "none"});
  }
  merge_stores(folder / "b", {folder / "a"});
  const auto expected = dump(folder / "a");
  for (const auto& [table, rows] : expected) {
    EXPECT_FALSE(rows.empty()) << "merge.cpp and this test know nothing of the table " << table;
  }
  EXPECT_EQ(dump(folder / "b"), expected);
}

TEST(Merge, CompletesARunThatWentOnInACopyOfItsStore) {
  const TemporaryFolder folder;
  add(folder / "early", "", [](RunData& data) {
    data.run.ended_unix_ns = 0;
    data.blocks.resize(data.blocks.size() / 2);
  });
  add(folder / "late", "", [](RunData& data) {
    CellArmRecord& died = data.cell_arms[3];
    died.status = RowStatus::oom;
    died.reason = "the process died here";
  });
  const MergeReport report = merge_stores(folder / "early", {folder / "late"});
  EXPECT_EQ(report.united, 1);
  EXPECT_EQ(rows_of(folder / "early"), rows_of(folder / "late"));
  EXPECT_NE(Store(folder / "early", StoreAccess::read).load_run_record(1).ended_unix_ns, 0);
  EXPECT_EQ(merge_stores(folder / "late", {folder / "early"}).unchanged, 1);
}

TEST(Merge, RefusesAContradictionByItsNameAndLeavesTheTargetAlone) {
  struct Case {
    Change change;
    std::vector<std::string_view> words;
  };
  const std::vector<Case> cases{
      {[](RunData& data) { data.blocks.back().visits[0].samples_ns[3] += 1; },
       {"block 0 of launch 9", "decode batch 1 length 256"}},
      {[](RunData& data) { data.blocks.front().started_unix_ns += 1; },
       {"block 0 of launch 0", "prefill batch 1 length 64"}},
      {[](RunData& data) { data.cell_arms[3].counters = {{"operators", 4}}; },
       {"arm bigcode", "prefill batch 1 length 128", "rows 'ok'"}},
  };
  for (const Case& example : cases) {
    const TemporaryFolder folder;
    add(folder / "target", "");
    add(folder / "new", "2/2", [](RunData& data) { data.run.name = "new"; });
    add(folder / "bad", "", example.change);
    const std::string before = content(folder / "target");
    const std::string message = message_of([&] { merge_stores(folder / "target", {folder / "new", folder / "bad"}); });
    EXPECT_TRUE(contains(message, {"'sample'", "bad", "nothing was changed", "--name"}));
    for (const std::string_view word : example.words) {
      EXPECT_TRUE(contains(message, {word}));
    }
    EXPECT_EQ(content(folder / "target"), before) << "the run before the bad one must not stay";
  }
}

TEST(Merge, KnowsWhatWorkersSaidAndRefusesAnotherEngine) {
  const TemporaryFolder folder;
  const auto identify = [&](const char* store, const char* version) {
    Store(folder / store, StoreAccess::write)
        .identify_arm({.id = 2, .label = "bigcode", .engine = "peer", .version = version, .settings = "{}"});
  };
  for (const char* store : {"silent", "one", "two"}) {
    add(folder / store, "");
  }
  identify("one", "1");
  identify("two", "2");
  EXPECT_EQ(merge_stores(folder / "silent", {folder / "one"}).united, 1);
  EXPECT_EQ(Store(folder / "silent", StoreAccess::read).load_run(1).arms.at(1).version, "1");
  EXPECT_EQ(merge_stores(folder / "silent", {folder / "one"}).unchanged, 1);
  EXPECT_TRUE(contains(message_of([&] { merge_stores(folder / "silent", {folder / "two"}); }),
                       {"arm bigcode", "peer 2 {} and was peer 1 {}"}));
}

TEST(Merge, CollectsTheFlagsThatLaterLaunchesAdded) {
  const TemporaryFolder folder;
  add(folder / "a", "", [](RunData& data) { data.cell_arms[2].flags = {"first"}; });
  add(folder / "b", "", [](RunData& data) { data.cell_arms[2].flags = {"second"}; });
  EXPECT_EQ(merge_stores(folder / "a", {folder / "b"}).united, 1);
  EXPECT_EQ(Store(folder / "a", StoreAccess::read).load_run(1).cell_arms[2].flags,
            (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(merge_stores(folder / "a", {folder / "b"}).unchanged, 1);
}

TEST(Merge, CollectsTracesAndKeepsTheTargetsWhereBothHaveOne) {
  const TemporaryFolder folder;
  for (const char* store : {"a", "b"}) {
    add(folder / store, "");
  }
  TraceRecord other = sample_trace(2, 1);
  other.file = "other.pftrace";
  Store(folder / "a", StoreAccess::write).save_trace(1, sample_trace(2, 1));
  Store(folder / "b", StoreAccess::write).save_trace(1, other);
  Store(folder / "b", StoreAccess::write).save_trace(1, sample_trace(3, 2));
  const MergeReport report = merge_stores(folder / "a", {folder / "b"});
  EXPECT_EQ(report.united, 1);
  ASSERT_EQ(report.notices.size(), 1U);
  EXPECT_TRUE(contains(report.notices[0], {"trace of arm causal", "prefill batch 1 length 128", "stays"}));
  EXPECT_EQ(Store(folder / "a", StoreAccess::read).load_run(1).traces,
            (std::vector{sample_trace(2, 1), sample_trace(3, 2)}));
  EXPECT_EQ(merge_stores(folder / "a", {folder / "b"}).unchanged, 1);
}

TEST(Merge, TakesTheTracesOfShardsIntoTheRunOfTheirPlan) {
  const TemporaryFolder folder;
  const std::int64_t first = add(folder / "all", "1/2");
  const std::int64_t second = add(folder / "all", "2/2");
  const RunData shard = Store(folder / "all", StoreAccess::read).load_plan(second);
  Store(folder / "all", StoreAccess::write).save_trace(second, sample_trace(shard.cells[1].id, shard.arms[1].id));
  merge_stores(folder / "all", {});
  EXPECT_EQ(Store(folder / "all", StoreAccess::read).load_run(first).traces, std::vector{sample_trace(2, 2)});
}

TEST(Merge, CollectsWhatLaunchesSpentAndCountsNothingTwice) {
  const TemporaryFolder folder;
  for (const char* store : {"a", "b"}) {
    add(folder / store, "");
  }
  const TimeSpentRecord early{.launch = 0, .arm_id = 1, .activity = Activity::timing, .ns = 5};
  TimeSpentRecord late = early;
  late.ns = 9;  // the same shard, after it was resumed
  const TimeSpentRecord other{.shard = "", .launch = 1, .arm_id = 0, .activity = Activity::rest, .ns = 3};
  Store(folder / "a", StoreAccess::write).add_times_spent(1, {early});
  Store(folder / "b", StoreAccess::write).add_times_spent(1, {late, other});
  EXPECT_EQ(merge_stores(folder / "a", {folder / "b"}).united, 1);
  EXPECT_EQ(Store(folder / "a", StoreAccess::read).load_run(1).times_spent, (std::vector{late, other}));
  EXPECT_EQ(merge_stores(folder / "a", {folder / "b"}).unchanged, 1);
}

TEST(Merge, TakesTheProofsAndTimesOfShardsIntoTheRunOfTheirPlan) {
  const TemporaryFolder folder;
  const std::int64_t first = add(folder / "all", "1/2");
  const std::int64_t second = add(folder / "all", "2/2");
  const RunData shard = Store(folder / "all", StoreAccess::read).load_plan(second);
  {
    Store store(folder / "all", StoreAccess::write);
    store.save_proof(
        {.cell_id = shard.cells[1].id, .batch = 1, .length = 8, .tokens = {{3}}, .chosen = {{shard.arms[1].id, "x"}}});
    store.add_times_spent(second,
                          {{.shard = "2/2", .arm_id = shard.arms[1].id, .activity = Activity::timing, .ns = 4}});
    store.add_times_spent(first, {{.shard = "1/2", .arm_id = 2, .activity = Activity::timing, .ns = 6}});
    store.save_completions({{.arm_id = shard.arms[1].id, .prompt = 4, .prompt_tokens = 2, .token_ids = {7, 8}}});
    store.save_quality({.arm_id = shard.arms[1].id, .tokens = 5, .kl_divergence = 0.5});
  }
  merge_stores(folder / "all", {});
  const RunData merged = Store(folder / "all", StoreAccess::read).load_run(first);
  EXPECT_EQ(merged.completions,
            (std::vector<CompletionRecord>{
                {.arm_id = merged.arms[1].id, .prompt = 4, .prompt_tokens = 2, .token_ids = {7, 8}}}));
  EXPECT_EQ(merged.qualities,
            (std::vector<QualityRecord>{{.arm_id = merged.arms[1].id, .tokens = 5, .kl_divergence = 0.5}}));
  ASSERT_EQ(merged.proofs.size(), 1U);
  EXPECT_EQ(merged.proofs[0].cell_id, merged.cells[1].id);
  EXPECT_EQ(merged.proofs[0].chosen, (std::map<std::int64_t, std::string>{{merged.arms[1].id, "x"}}));
  EXPECT_EQ(merged.times_spent,
            (std::vector<TimeSpentRecord>{
                {.shard = "1/2", .arm_id = merged.arms[1].id, .activity = Activity::timing, .ns = 6},
                {.shard = "2/2", .arm_id = merged.arms[1].id, .activity = Activity::timing, .ns = 4}}));
}

TEST(Merge, RefusesAnotherStepCountOfACell) {
  const TemporaryFolder folder;
  add(folder / "target", "");
  add(folder / "bad", "");
  Store(folder / "bad", StoreAccess::write).set_steps(2, 16, 16);
  EXPECT_TRUE(contains(message_of([&] { merge_stores(folder / "target", {folder / "bad"}); }),
                       {"prefill batch 1 length 128", "16 timed steps in turns of 16 against 8 in turns of 8"}));
}

TEST(Merge, KeepsShardsOfDifferentMachinesApartAndSaysSo) {
  const TemporaryFolder folder;
  add(folder / "1", "1/2");
  add(folder / "2", "2/2", [](RunData& data) { data.run.machine.cpu = "another CPU"; });
  const MergeReport report = merge_stores(folder / "all", {folder / "1", folder / "2"});
  EXPECT_EQ(report.added, 2);
  EXPECT_EQ(report.united, 0);
  ASSERT_EQ(report.notices.size(), 3U) << "two that are not whole, and why";
  EXPECT_TRUE(contains(report.notices[2], {"different places", "another CPU", "AMD EPYC", "run 1", "run 2"}));
  for (const char* run : {"1", "2"}) {
    EXPECT_TRUE(contains(rows_of(folder / "all", run), {"\"status\": \"planned\"", "\"verdict\": null"}));
    EXPECT_FALSE(contains(rows_of(folder / "all", run), {"\"verdict\": \"FASTER\""}));
  }
}

TEST(Merge, UnitesShardsThatWroteToOneStore) {
  const TemporaryFolder folder;
  add(folder / "all", "1/2");
  add(folder / "all", "2/2");
  add(folder / "whole", "");
  EXPECT_TRUE(merge_stores(folder / "all", {}).notices.empty());
  const Store store(folder / "all", StoreAccess::read);
  ASSERT_EQ(store.list_runs().size(), 1U);
  EXPECT_EQ(store.list_runs()[0].id, 1);
  EXPECT_EQ(rows_of(folder / "all"), rows_of(folder / "whole"));
}

TEST(Merge, LeavesAShardAloneThatIsStillMeasuredInTheTarget) {
  const TemporaryFolder folder;
  add(folder / "all", "1/2", [](RunData& data) { data.run.ended_unix_ns = 0; });
  const std::string before = content(folder / "all");
  const MergeReport report = merge_stores(folder / "all", {});
  ASSERT_EQ(report.notices.size(), 1U);
  EXPECT_TRUE(contains(report.notices[0], {"Run 1", "shard 1/2", "--resume"}));
  EXPECT_EQ(content(folder / "all"), before);
}

TEST(Merge, ReadsSourcesOfEveryOlderSchemaAndChangesNoSource) {
  for (int schema = 1; schema < Store::kSchemaVersion; ++schema) {
    const TemporaryFolder folder;
    {
      SQLite::Database old((folder / "old").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      for (int step = 0; step < schema; ++step) {
        old.exec(migration_steps()[static_cast<std::size_t>(step)]);
      }
      old.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kStoreApplicationId, schema));
      old.exec("INSERT INTO builds VALUES (1, 'c', 'g++', 'Release', '2', '')");
      old.exec("INSERT INTO machines VALUES (1, 'cpu', 2, 1, 'avx2', 'os', '')");
      old.exec("INSERT INTO models VALUES (1, 'm', 'gpt_bigcode', 1, 64, 1)");
      old.exec("INSERT INTO runs VALUES (7, 'u', 'before', 'cmd', '{}', 1, 1, 1, 5, 6, 0, 1, 1, 1)");
    }
    const std::string before = testing::read_file(folder / "old");
    EXPECT_EQ(merge_stores(folder / "new", {folder / "old"}).added, 1);
    EXPECT_EQ(testing::read_file(folder / "old"), before);
    EXPECT_EQ(Store(folder / "new", StoreAccess::read).find_run("before"), 1);
  }
}

TEST(Merge, RefusesTheTargetAsSourceAndASourceThatIsNotThere) {
  const TemporaryFolder folder;
  add(folder / "a", "");
  EXPECT_TRUE(contains(message_of([&] { merge_stores(folder / "a", {folder / "a"}); }), {"is the target itself"}));
  EXPECT_TRUE(contains(message_of([&] { merge_stores(folder / "new", {folder / "absent"}); }), {"absent"}));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"}) << "no target comes into being";
}

TEST(Merge, OfSeveralProcessesAtOnceLosesNothing) {
  const TemporaryFolder folder;
  constexpr int kShards = 4;
  for (int i = 1; i <= kShards; ++i) {
    add(folder / std::to_string(i), fmt::format("{}/{}", i, kShards));
  }
  std::vector<pid_t> children;
  for (int i = 1; i <= kShards; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        merge_stores(folder / "all", {folder / std::to_string(i)});
      } catch (const std::exception& error) {
        std::fprintf(stderr, "merge %d: %s\n", i, error.what());
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
  add(folder / "whole", "");
  ASSERT_EQ(Store(folder / "all", StoreAccess::read).list_runs().size(), 1U);
  EXPECT_EQ(rows_of(folder / "all"), rows_of(folder / "whole"));
}

}  // namespace
}  // namespace decodelab
