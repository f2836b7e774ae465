// Shards: which cells they have, and what makes two runs parts of one plan.
#include "reports/store/shard.h"

#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;
using testing::planned_run;

RunData shard_run(const std::string& shard, std::int64_t ended_unix_ns = 100) {
  RunData data = planned_run();
  data.run.plan_json = R"({"seed":1,"threads":8,"checkpoint":"/a","shard":")" + shard + "\"}";
  data.run.command = "decodelab sweep -m x --shard " + shard + " --arm causal";
  data.run.ended_unix_ns = ended_unix_ns;
  return data;
}

TEST(Shard, HasEveryCellOfThePlanInExactlyOneOfThem) {
  for (std::size_t cell = 0; cell < 20; ++cell) {
    int owners = 0;
    for (std::int64_t index = 1; index <= 3; ++index) {
      owners += Shard{.index = index, .count = 3}.has(cell) ? 1 : 0;
    }
    EXPECT_EQ(owners, 1) << cell;
  }
  EXPECT_TRUE((Shard{.index = 1, .count = 3}.has(0)));
  EXPECT_TRUE((Shard{.index = 3, .count = 3}.has(5)));
  EXPECT_TRUE(Shard().has(7)) << "a run without a shard has all cells";
}

TEST(Shard, ReadsBackWhatItPrintsAndRefusesAnythingElse) {
  EXPECT_EQ(parse_shard("2/3"), (Shard{.index = 2, .count = 3}));
  EXPECT_EQ(to_string(parse_shard("12/12")), "12/12");
  for (const char* wrong : {"", "0/2", "3/2", "1", "/", "1/", "/2", "a/b", "1/2/3", "-1/2", "1/2 "}) {
    EXPECT_TRUE(contains(message_of([&] { parse_shard(wrong); }), {"--shard", wrong, "i/n"})) << wrong;
  }
}

TEST(Shard, IsFoundInThePlanOfARun) {
  EXPECT_EQ(shard_of(shard_run("2/3").run), (Shard{.index = 2, .count = 3}));
  EXPECT_EQ(shard_of(planned_run().run), std::nullopt);
  for (const char* plan : {"", "[]", "no json"}) {
    EXPECT_EQ(shard_of(RunRecord{.plan_json = plan}), std::nullopt) << plan;
  }
}

TEST(PlanHash, IsTheSameForShardsOfOnePlanAndForNoOtherPlan) {
  const std::string hash = plan_hash(shard_run("1/2"));
  EXPECT_EQ(hash.size(), 32U);
  EXPECT_EQ(plan_hash(shard_run("2/2")), hash);
  RunData elsewhere = shard_run("2/2");
  elsewhere.run.plan_json = R"({"seed":1,"threads":2,"checkpoint":"/b","shard":"2/2"})";
  for (CellRecord& cell : elsewhere.cells) {
    cell.threads = 2;
  }
  EXPECT_EQ(plan_hash(elsewhere), hash) << "where it runs is not part of the plan";

  const std::vector<std::pair<const char*, void (*)(RunData&)>> changes{
      {"name", [](RunData& data) { data.run.name = "another"; }},
      {"seed", [](RunData& data) { data.run.seed = 2; }},
      {"launches", [](RunData& data) { ++data.run.launches; }},
      {"blocks", [](RunData& data) { ++data.run.blocks_per_launch; }},
      {"model", [](RunData& data) { data.run.model.name = "another"; }},
      {"length", [](RunData& data) { ++data.cells[3].length; }},
      {"a cell less", [](RunData& data) { data.cells.pop_back(); }},
      {"arm", [](RunData& data) { data.arms[1].label = "flash"; }},
      {"baseline", [](RunData& data) { std::swap(data.arms[0].baseline, data.arms[1].baseline); }},
      {"fill", [](RunData& data) { data.run.plan_json = R"({"seed":1,"fill":"generated","shard":"1/2"})"; }}};
  for (const auto& [what, change] : changes) {
    RunData other = shard_run("1/2");
    change(other);
    EXPECT_NE(plan_hash(other), hash) << what;
  }
}

TEST(MergedShards, HaveOneUuidForAPlanOnAMachineAndEndWithTheLast) {
  RunData first = shard_run("1/2", 100);
  RunData second = shard_run("2/2", 90);
  make_merged(first);
  make_merged(second);
  EXPECT_EQ(first.run.uuid, second.run.uuid);
  EXPECT_EQ(first.run.uuid.size(), 36U);
  EXPECT_EQ(first.run.command, "decodelab sweep -m x --arm causal");
  EXPECT_EQ(shard_of(first.run), std::nullopt);
  EXPECT_EQ(first.run.ended_unix_ns, 0) << "the other half is missing";
  EXPECT_EQ(merged_shards(first.run), (MergedShards{{"1/2", 100}}));
  set_merged_shards(first.run, {{"1/2", 100}, {"2/2", 90}}, first.cells.size());
  EXPECT_EQ(first.run.ended_unix_ns, 100);

  RunData elsewhere = shard_run("2/2");
  elsewhere.run.machine.cpu = "another";
  RunData rebuilt = shard_run("2/2");
  rebuilt.run.build.commit = "another";
  RunData larger = shard_run("2/2");
  larger.run.machine.memory_bytes += 4096;
  for (RunData* data : {&elsewhere, &rebuilt, &larger}) {
    make_merged(*data);
  }
  EXPECT_NE(elsewhere.run.uuid, first.run.uuid);
  EXPECT_NE(rebuilt.run.uuid, first.run.uuid);
  EXPECT_EQ(larger.run.uuid, first.run.uuid) << "some pages more are no other machine";
}

TEST(MergedShards, CoverThePlanOnlyWhereEveryCellsShardEnded) {
  EXPECT_FALSE(covers({}, 2));
  EXPECT_FALSE(covers({{"1/2", 5}}, 2));
  EXPECT_FALSE(covers({{"1/2", 5}, {"2/2", 0}}, 2));
  EXPECT_TRUE(covers({{"1/2", 5}, {"2/2", 6}}, 2));
  EXPECT_TRUE(covers({{"1/2", 5}, {"2/4", 6}, {"4/4", 7}}, 9)) << "halves of a half will do";
}

}  // namespace
}  // namespace decodelab
