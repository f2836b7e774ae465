// The store gives back what it was given, and takes blocks and runs whole or not at all.
#include "reports/store/store.h"

#include <limits>
#include <stdexcept>

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

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

const SampleOptions kStored{.phases = {Phase::decode},
                            .batches = {1, 4},
                            .lengths = {64, 128},
                            .arms = {{"causal"}, {"bigcode", 0.7}},
                            .launches = 2,
                            .steps = 8};

TEST(Store, GivesBackWhatItWasGiven) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  data.cell_arms[1] = {0,
                       1,
                       RowStatus::oom,
                       "needs 3 GiB",
                       false,
                       1'234'567'890'123,
                       7,
                       {"period-not-covered", "carry-over"},
                       {{"allocations", 12}, {"op.aten::cat", 4}},
                       Agreement{.logit_error = 0.01, .kl_divergence = 0.002, .top_1_agreement = 0.75}};
  store.add_run(data);
  EXPECT_EQ(data.run.id, 1);
  EXPECT_EQ(data.run.uuid.size(), 36U);
  EXPECT_EQ(data.cells[3].id, 4);
  EXPECT_EQ(data.cell_arms[7].cell_id, 4);
  EXPECT_EQ(data.cell_arms[7].arm_id, 2);
  const RunData sample = sample_run(kStored);
  for (const BlockRecord& block : sample.blocks) {
    store.add_block(data.run.id, block);
  }

  const RunData loaded = store.load_run(1);
  EXPECT_EQ(loaded.run.command, data.run.command);
  EXPECT_EQ(loaded.run.uuid, data.run.uuid);
  EXPECT_EQ(loaded.run.plan_json, data.run.plan_json);
  EXPECT_EQ(loaded.run.build.commit, "0123456789ab");
  EXPECT_EQ(loaded.run.machine.memory_bytes, 68'719'476'736);
  EXPECT_EQ(loaded.run.machine.isa, data.run.machine.isa);
  EXPECT_EQ(loaded.run.model.parameters, 1'124'886'528);
  EXPECT_TRUE(loaded.run.model.random_weights);
  ASSERT_EQ(loaded.cells.size(), 4U);
  EXPECT_EQ(loaded.cells[2].batch, 4);
  EXPECT_EQ(loaded.cells[2].length, 64);
  EXPECT_EQ(loaded.cells[2].scope, "step");
  ASSERT_EQ(loaded.arms.size(), 2U);
  EXPECT_TRUE(loaded.arms[0].baseline);
  EXPECT_EQ(loaded.arms[1].label, "bigcode");
  const CellArmRecord& row = loaded.cell_arms[1];
  EXPECT_EQ(row.status, RowStatus::oom);
  EXPECT_EQ(row.reason, "needs 3 GiB");
  EXPECT_EQ(row.engaged, std::optional(false));
  EXPECT_EQ(row.peak_bytes, std::optional<std::int64_t>(1'234'567'890'123));
  EXPECT_EQ(row.ties, 7);
  EXPECT_EQ(row.flags, (std::vector<std::string>{"period-not-covered", "carry-over"}));
  EXPECT_EQ(row.counters, (Counters{{"allocations", 12}, {"op.aten::cat", 4}}));
  EXPECT_EQ(row.agreement, (Agreement{.logit_error = 0.01, .kl_divergence = 0.002, .top_1_agreement = 0.75}));
  EXPECT_EQ(loaded.cell_arms[0].agreement, std::nullopt);
  EXPECT_EQ(loaded.cell_arms[0].engaged, std::nullopt);
  EXPECT_EQ(loaded.cell_arms[0].peak_bytes, std::nullopt);
  ASSERT_EQ(loaded.blocks.size(), sample.blocks.size());
  for (std::size_t b = 0; b < sample.blocks.size(); ++b) {
    EXPECT_EQ(loaded.blocks[b].launch, sample.blocks[b].launch);
    EXPECT_EQ(loaded.blocks[b].other_cpu_share, sample.blocks[b].other_cpu_share);
    ASSERT_EQ(loaded.blocks[b].visits.size(), sample.blocks[b].visits.size());
    for (std::size_t v = 0; v < sample.blocks[b].visits.size(); ++v) {
      EXPECT_EQ(loaded.blocks[b].visits[v].samples_ns, sample.blocks[b].visits[v].samples_ns);
      EXPECT_EQ(loaded.blocks[b].visits[v].previous_arm_id, sample.blocks[b].visits[v].previous_arm_id);
      EXPECT_EQ(loaded.blocks[b].visits[v].wall_ns, sample.blocks[b].visits[v].wall_ns);
      EXPECT_TRUE(loaded.blocks[b].visits[v].quiet);
    }
  }
}

TEST(Store, WritesSamplesAsLittleEndianBlobs) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  BlockRecord block{.cell_id = 1, .visits = {{.arm_id = 1, .samples_ns = {0x0102030405060708, -2, 0}}}};
  store.add_block(1, block);
  SQLite::Database raw((folder / "a.sqlite").string());
  EXPECT_EQ(raw.execAndGet("SELECT hex(samples_ns) FROM visits").getString(),
            "0807060504030201FEFFFFFFFFFFFFFF0000000000000000");
  EXPECT_EQ(store.load_run(1).blocks.at(0).visits.at(0).samples_ns, block.visits[0].samples_ns);
}

TEST(Store, RefusesASecondBlockOfTheSamePlaceAndKeepsTheFirst) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  BlockRecord block{.launch = 1, .block = 0, .cell_id = 2, .visits = {{.arm_id = 1, .samples_ns = {5}}}};
  store.add_block(1, block);
  block.visits[0].samples_ns = {6};
  EXPECT_TRUE(contains(message_of([&] { store.add_block(1, block); }), {"block 0 of launch 1 in cell 2", "a.sqlite"}));
  EXPECT_EQ(store.load_run(1).blocks.at(0).visits.at(0).samples_ns, std::vector<std::int64_t>{5});
}

TEST(Store, WritesNothingOfABlockWhoseLastVisitIsInvalid) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  const BlockRecord block{
      .cell_id = 1, .visits = {{.arm_id = 1, .samples_ns = {5}}, {.arm_id = 99, .position = 1, .samples_ns = {5}}}};
  try {
    store.add_block(1, block);
    FAIL() << "an arm that does not exist was accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(contains(error.what(), {"a.sqlite"}));
  }
  EXPECT_TRUE(store.load_run(1).blocks.empty());
}

TEST(Store, RefusesACellOfAnotherRun) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData first = planned_run(kStored);
  RunData second = planned_run(kStored);
  store.add_run(first);
  store.add_run(second);
  EXPECT_THROW(store.add_block(second.run.id, {.cell_id = first.cells[0].id, .visits = {}}), std::runtime_error);
}

TEST(Store, WritesNothingOfARunWithTheSameArmTwice) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  data.arms[1].label = data.arms[0].label;
  EXPECT_THROW(store.add_run(data), std::runtime_error);
  EXPECT_EQ(data.run.id, 0);
  EXPECT_TRUE(store.list_runs().empty());
}

TEST(Store, RefusesRowsThatPointOutsideOfThePlan) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  data.cell_arms[0].cell_id = 4;
  EXPECT_TRUE(contains(message_of([&] { store.add_run(data); }), {"cell 4 of 4"}));
}

TEST(Store, SharesBuildMachineAndModelBetweenRuns) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  for (int i = 0; i < 3; ++i) {
    RunData data = planned_run(kStored);
    store.add_run(data);
  }
  SQLite::Database raw((folder / "a.sqlite").string());
  EXPECT_EQ(
      raw.execAndGet(
             "SELECT (SELECT count(*) FROM builds) + (SELECT count(*) FROM machines) + (SELECT count(*) FROM models)")
          .getInt(),
      3);
}

TEST(Store, UpdatesRowsStepsAndTheEnd) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  data.run.ended_unix_ns = 0;
  store.add_run(data);
  CellArmRecord row;
  row.cell_id = 2;
  row.arm_id = 1;
  row.status = RowStatus::incorrect;
  row.reason = "tokens differ";
  store.update_cell_arm(row);
  store.set_steps(2, 48, 6);
  store.set_blocks_per_launch(1, 3);
  store.end_run(1, 77);
  const RunData loaded = store.load_run(1);
  EXPECT_EQ(loaded.cell_arms[2].status, RowStatus::incorrect);
  EXPECT_EQ(loaded.cell_arms[2].reason, "tokens differ");
  EXPECT_EQ(loaded.cells[1].steps, 48);
  EXPECT_EQ(loaded.cells[1].slice_steps, 6);
  EXPECT_EQ(loaded.run.ended_unix_ns, 77);
  EXPECT_EQ(loaded.run.blocks_per_launch, 3);
  EXPECT_TRUE(contains(message_of([&] { store.set_blocks_per_launch(99, 1); }), {"no run 99"}));
  EXPECT_TRUE(contains(message_of([&] { store.set_steps(99, 1, 1); }), {"no cell 99"}));
  EXPECT_TRUE(contains(message_of([&] { store.end_run(99, 1); }), {"no run 99"}));
  row.cell_id = 9;
  EXPECT_TRUE(contains(message_of([&] { store.update_cell_arm(row); }), {"cell 9 and arm 1"}));
  EXPECT_TRUE(contains(message_of([&] { static_cast<void>(store.load_run(99)); }), {"no run 99"}));
}

TEST(Store, FindsRunsByIdNameUuidAndAge) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  std::string uuid;
  for (int i = 0; i < 3; ++i) {
    RunData data = planned_run(kStored);
    data.run.name = i == 2 ? "7" : "nightly";
    data.run.started_unix_ns += i;
    store.add_run(data);
    uuid = data.run.uuid;
  }
  EXPECT_EQ(store.find_run("latest"), 3);
  EXPECT_EQ(store.find_run("latest~2"), 1);
  EXPECT_EQ(store.find_run("1"), 1);
  EXPECT_EQ(store.find_run("nightly"), 2);
  EXPECT_EQ(store.find_run("7"), 3);  // no id 7, so the name counts
  EXPECT_EQ(store.find_run(uuid), 3);
  for (const char* missing : {"weekly", "latest~3", "latest~", "latest~x", "latest~-1", "99", ""}) {
    EXPECT_TRUE(contains(message_of([&] { static_cast<void>(store.find_run(missing)); }), {"nightly", "3 (7)"}))
        << missing;
  }
}

TEST(Store, SaysThatAStoreWithoutRunsHasNone) {
  const TemporaryFolder folder;
  const Store store(folder / "a.sqlite", StoreAccess::write);
  EXPECT_TRUE(contains(message_of([&] { static_cast<void>(store.find_run("latest")); }), {"no runs at all"}));
}

TEST(Store, AddsUpWhatLaunchesSpentByShardArmAndActivity) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  store.add_times_spent(1, {{.launch = 1, .arm_id = 2, .activity = Activity::timing, .ns = 5},
                            {.launch = 0, .arm_id = 0, .activity = Activity::rest, .ns = 7}});
  store.add_times_spent(1, {{.launch = 1, .arm_id = 2, .activity = Activity::timing, .ns = 6},
                            {.shard = "1/2", .launch = 1, .arm_id = 2, .activity = Activity::timing, .ns = 8}});
  const std::vector<TimeSpentRecord> expected{
      {.launch = 0, .arm_id = 0, .activity = Activity::rest, .ns = 7},
      {.launch = 1, .arm_id = 2, .activity = Activity::timing, .ns = 11},
      {.shard = "1/2", .launch = 1, .arm_id = 2, .activity = Activity::timing, .ns = 8}};
  EXPECT_EQ(store.load_run(1).times_spent, expected);
  EXPECT_EQ(store.load_plan(1).times_spent, expected);
  EXPECT_EQ(store.time_spent_ns(1, 1), 19);
  EXPECT_EQ(store.time_spent_ns(1, 2), 0);
}

TEST(Store, KeepsTheLastProofOfACell) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  CellProofRecord proof{
      .cell_id = 2, .batch = 1, .length = 64, .first = {}, .tokens = {{5}, {6}}, .chosen = {{1, "x"}}};
  store.save_proof(proof);
  EXPECT_EQ(store.load_run(1).proofs, std::vector{proof});
  proof.first = {9};
  proof.chosen = {{1, "y"}, {2, "z"}};
  store.save_proof(proof);
  EXPECT_EQ(store.load_plan(1).proofs, std::vector{proof});
}

TEST(Store, KeepsTheLastCompletionOfAnArmAndAPrompt) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  CompletionRecord later{.arm_id = 2,
                         .prompt = 1,
                         .prompt_text = "Once",
                         .prompt_class = "story",
                         .prompt_tokens = 1,
                         .token_ids = {4, 5},
                         .text = " upon a time"};
  const CompletionRecord first{.arm_id = 1, .prompt = 0, .prompt_tokens = 3, .token_ids = {}};
  store.save_completions({later, first});
  EXPECT_EQ(store.load_run(1).completions, (std::vector{first, later}));
  later.token_ids = {9};
  store.save_completions({later});
  EXPECT_EQ(store.load_plan(1).completions, (std::vector{first, later}));
}

TEST(Store, KeepsWhatArmsPredictOfATextAndReplacesIt) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  QualityRecord second{.arm_id = 2,
                       .tokens = 2048,
                       .log_perplexity = 2.5,
                       .log_perplexity_error = 0.05,
                       .log_ratio = 0.01,
                       .log_ratio_error = 0.001,
                       .kl_divergence = 0.03,
                       .kl_divergence_error = 0.002,
                       .kl_divergence_999 = 0.9,
                       .top_1_agreement = 0.95,
                       .top_1_agreement_error = 0.005,
                       .rms_probability = 0.04};
  const QualityRecord first{.arm_id = 1, .reason = "it shows no logits"};
  store.save_quality(second);
  store.save_quality(first);
  EXPECT_EQ(store.load_run(1).qualities, (std::vector{first, second}));
  second.tokens = 64;
  store.save_quality(second);
  EXPECT_EQ(store.load_plan(1).qualities, (std::vector{first, second}));
}

TEST(Store, KeepsTheNewestTraceOfAnArmInACell) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  EXPECT_TRUE(store.load_run(1).traces.empty());
  TraceRecord older = sample_trace(3, 2);
  older.shares.pop_back();
  older.file = "older.pftrace";
  store.save_trace(1, older);
  store.save_trace(1, sample_trace(1, 1));
  store.save_trace(1, sample_trace(3, 2));
  const std::vector expected{sample_trace(1, 1), sample_trace(3, 2)};
  EXPECT_EQ(store.load_run(1).traces, expected);
  EXPECT_EQ(store.load_plan(1).traces, expected);
  store.end_run(1, 5);
  TraceRecord broken = sample_trace(2, 1);
  broken.verdict = "broken";
  broken.reason = "3 of 16 replays recorded";
  broken.shares.clear();
  store.save_trace(1, broken);
  EXPECT_EQ(store.load_run(1).traces, (std::vector{sample_trace(1, 1), broken, sample_trace(3, 2)}));
}

TEST(Store, RefusesATraceThatItCannotKeepAndLeavesTheOlderOne) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData first = planned_run(kStored);
  store.add_run(first);
  RunData second = planned_run(kStored);
  store.add_run(second);
  store.save_trace(1, sample_trace(1, 2));
  EXPECT_TRUE(contains(message_of([&] { store.save_trace(2, sample_trace(1, 2)); }), {"cell 1 and arm 2 in run 2"}));
  EXPECT_TRUE(contains(message_of([&] { store.save_trace(1, sample_trace(1, 99)); }), {"cell 1 and arm 99"}));
  TraceRecord twice = sample_trace(1, 2);
  twice.shares.push_back(twice.shares[0]);
  EXPECT_TRUE(contains(message_of([&] { store.save_trace(1, twice); }), {"stage 'attention' twice"}));
  TraceRecord unknown = sample_trace(1, 2);
  unknown.perturbation_high = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(contains(message_of([&] { store.save_trace(1, unknown); }), {"perturbation of nan", "finite"}));
  EXPECT_EQ(store.load_run(1).traces, std::vector{sample_trace(1, 2)});
  EXPECT_TRUE(store.load_run(2).traces.empty());
}

TEST(Store, RefusesAShareThatIsNoNumberAndKeepsOneWithoutBound) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  // SQLite has no NaN: it would be NULL, which the column forbids.
  EXPECT_THROW(
      store.add_block(1, {.cell_id = 1, .other_cpu_share = std::numeric_limits<double>::quiet_NaN(), .visits = {}}),
      StoreError);
  EXPECT_TRUE(store.load_run(1).blocks.empty());
  store.add_block(1, {.cell_id = 1, .other_cpu_share = std::numeric_limits<double>::infinity(), .visits = {}});
  EXPECT_EQ(store.load_run(1).blocks.at(0).other_cpu_share, std::numeric_limits<double>::infinity());
}

TEST(Store, ListsFinishedBlocksForResume) {
  const TemporaryFolder folder;
  Store store(folder / "a.sqlite", StoreAccess::write);
  RunData data = planned_run(kStored);
  store.add_run(data);
  EXPECT_TRUE(store.finished_blocks(1).empty());
  store.add_block(1, {.launch = 1, .block = 0, .cell_id = 3, .visits = {}});
  store.add_block(1, {.launch = 0, .block = 1, .cell_id = 2, .visits = {}});
  EXPECT_EQ(store.finished_blocks(1),
            (std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{0, 1, 2}, {1, 0, 3}}));
}

TEST(Store, TakesARunSelectorApart) {
  const auto parts = [](const char* text) {
    const RunSelector selector = parse_run_selector(text, "d.sqlite");
    return std::vector<std::string>{selector.store.string(), selector.run, selector.arm};
  };
  EXPECT_EQ(parts("latest"), (std::vector<std::string>{"d.sqlite", "latest", ""}));
  EXPECT_EQ(parts("/a@b/c.sqlite@latest~1"), (std::vector<std::string>{"/a@b/c.sqlite", "latest~1", ""}));
  EXPECT_EQ(parts("x.sqlite@3:causal,+kv-grow:tokens=8"),
            (std::vector<std::string>{"x.sqlite", "3", "causal,+kv-grow:tokens=8"}));
  for (const char* wrong : {"", "@latest", "a.sqlite@", ":causal", "latest:"}) {
    EXPECT_TRUE(contains(message_of([&] { parse_run_selector(wrong, "d"); }), {"[STORE@]RUN[:ARM]"})) << wrong;
  }
}

TEST(RowStatus, NamesReadBackAndUnknownOnesAreRefused) {
  for (const RowStatus status :
       {RowStatus::planned, RowStatus::ok, RowStatus::oom, RowStatus::unsupported, RowStatus::incorrect,
        RowStatus::not_engaged, RowStatus::failed, RowStatus::timeout, RowStatus::throttled}) {
    EXPECT_EQ(row_status_from_string(to_string(status)), status);
  }
  EXPECT_STREQ(to_string(RowStatus::not_engaged), "not-engaged");
  EXPECT_TRUE(
      contains(message_of([] { static_cast<void>(row_status_from_string("fine")); }), {"'fine'", "not-engaged"}));
}

}  // namespace
}  // namespace decodelab
