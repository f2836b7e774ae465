// A sweep's cells, arms and rows, and the requests that no row can stand for.
#include "bench/plan/sweep_plan.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "bench/plan/arm.h"

namespace decodelab {
namespace {

ModelConfig model() {
  ModelConfig config;
  config.family = "gpt_bigcode";
  config.layers = 4;
  config.hidden_size = 256;
  config.heads = 4;
  config.kv_heads = 1;
  config.head_dim = 64;
  config.intermediate_size = 1024;
  config.vocabulary_size = 4096;
  config.positions = 128;
  return config;
}

SweepRequest request() {
  SweepRequest asked;
  asked.model = "synthetic:tiny";
  asked.arms = {"causal", "bigcode"};
  asked.batches = {1, 8};
  asked.lengths = {16, 64};
  asked.threads = 2;
  return asked;
}

TEST(SweepPlan, HasARowForEveryCellAndArm) {
  const RunData data = make_sweep(request(), model());
  ASSERT_EQ(data.cells.size(), 8u);
  ASSERT_EQ(data.arms.size(), 2u);
  EXPECT_EQ(data.cell_arms.size(), 16u);
  EXPECT_EQ(data.cells.front().phase, Phase::prefill);
  EXPECT_EQ(data.cells.back().phase, Phase::decode);
  EXPECT_EQ(data.cells.back().batch, 8);
  EXPECT_TRUE(data.arms.front().baseline);
  for (const CellArmRecord& row : data.cell_arms) {
    EXPECT_EQ(row.status, RowStatus::planned);
  }
}

TEST(SweepPlan, MakesARowUnsupportedWhereTheModelHasTooFewPositions) {
  SweepRequest asked = request();
  asked.lengths = {64, 121, 128, 129};
  const RunData data = make_sweep(asked, model());
  for (const CellArmRecord& row : data.cell_arms) {
    const CellRecord& cell = data.cells[static_cast<std::size_t>(row.cell_id)];
    const bool fits = cell.phase == Phase::prefill ? cell.length <= 128 : cell.length <= 120;
    EXPECT_EQ(row.status, fits ? RowStatus::planned : RowStatus::unsupported)
        << to_string(cell.phase) << ' ' << cell.length;
    EXPECT_EQ(row.reason.empty(), fits);
  }
}

TEST(SweepPlan, GivesEachArmOfOurOwnAProcessWhereTheyAreToBeApart) {
  SweepRequest asked = request();
  asked.workers = {"other=other-engine"};
  asked.null_arm = true;
  asked.roofline = true;
  asked.apart = [](const std::string& arm) { return "serve " + arm; };
  const RunData data = make_sweep(asked, model());
  std::map<std::string, std::string> commands;
  for (const ArmRecord& arm : data.arms) {
    commands[arm.label] = arm.command;
  }
  EXPECT_EQ(commands.at("bigcode"), "serve bigcode");
  EXPECT_EQ(commands.at(std::string(kNullPrefix) + "causal"), "serve causal");
  EXPECT_EQ(commands.at("other"), "other-engine");
  EXPECT_EQ(commands.at(kRooflineRead), "");
}

TEST(SweepPlan, AsksWorkersForSamplesAndPrefixesByTheirNames) {
  SweepRequest asked = request();
  asked.workers = {"a@samples=10=run --x=1", "a@prefix=0.5@samples=2=run '@y=2'", "a=run"};
  const RunData data = make_sweep(asked, model());
  std::map<std::string, std::string> commands;
  for (const ArmRecord& arm : data.arms) {
    commands[arm.label] = arm.command;
  }
  EXPECT_EQ(commands.at("a@samples=10"), "run --x=1");
  EXPECT_EQ(commands.at("a@prefix=0.5@samples=2"), "run '@y=2'");
  EXPECT_EQ(commands.at("a"), "run");
  for (const char* wrong : {"a@samples=10", "a@samples=0=run", "a@colour=red=run", "@samples=2=run"}) {
    asked.workers = {wrong};
    EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument) << wrong;
  }
}

TEST(SweepPlan, MakesARowOfWhatNoWorkerCan) {
  SweepRequest asked = request();
  for (const std::string setting : {"@regex=a*", "@top-tokens=3", "@prompt-top-tokens=3", "@typical-p=0.5"}) {
    asked.workers = {"a" + setting + "=run"};
    const RunData data = make_sweep(asked, model());
    for (const CellArmRecord& row : data.cell_arms) {
      const bool other = !data.arms[static_cast<std::size_t>(row.arm_id)].command.empty();
      EXPECT_EQ(row.status, other ? RowStatus::unsupported : RowStatus::planned) << setting;
      EXPECT_EQ(row.reason.starts_with(setting.substr(0, setting.find('=')) + ": workers "), other) << row.reason;
    }
  }
}

TEST(SweepPlan, MakesARowThatSaysWhereARequestHasNoUse) {
  SweepRequest asked = request();
  asked.arms = {"causal", "causal@samples=2", "causal@regex=a*"};
  for (const CellArmRecord& row : make_sweep(asked, model()).cell_arms) {
    if (row.arm_id == 1 && row.status == RowStatus::unsupported) {
      EXPECT_NE(row.reason.find("@samples"), std::string::npos) << row.reason;
    }
    EXPECT_TRUE(row.arm_id == 1 || row.status == RowStatus::planned) << row.reason;
  }
  asked.apart = [](const std::string& arm) -> std::string { throw std::invalid_argument(arm); };
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
}

TEST(SweepPlan, NamesTheScopeOfEveryCell) {
  SweepRequest asked = request();
  asked.scope = {.forward = false, .at_length = true};
  const RunData data = make_sweep(asked, model());
  EXPECT_EQ(data.cells.front().scope, "step") << "a prefill";
  EXPECT_EQ(data.cells.back().scope, "step-at-length");
}

TEST(SweepPlan, RefusesTokensThatAreVisibleAtTheEndOfAVisitOnACpu) {
  SweepRequest asked = request();
  asked.scope = {.visible_end = true};
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
  asked.device = "cuda:0";
  EXPECT_EQ(make_sweep(asked, model()).cells.back().scope, "step-visible-end");
}

TEST(SweepPlan, RunsArmsInSlicesButWhereThereAreOtherEngines) {
  SweepRequest asked;
  EXPECT_EQ(slice_ns_of(asked), kSliceNs);
  asked.workers = {"other=engine"};
  EXPECT_EQ(slice_ns_of(asked), 0);
  asked.slice_ns = 5;
  EXPECT_EQ(slice_ns_of(asked), 5);
  EXPECT_EQ(launch_plan_from_json(to_json(LaunchPlan{.slice_ns = 5})).slice_ns, 5);
  EXPECT_TRUE(launch_plan_from_json(to_json(LaunchPlan{.pin = true})).pin);
  const LaunchPlan older = launch_plan_from_json(to_json(LaunchPlan{}));
  EXPECT_EQ(older.slice_ns, 0);
  EXPECT_FALSE(older.pin) << "runs of older programs say nothing of it";
}

TEST(SweepPlan, RefusesTooFewLaunchesForPercentiles) {
  SweepRequest asked = request();
  asked.tail = true;
  asked.launches = 9;
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
  asked.launches = 10;
  EXPECT_NO_THROW(make_sweep(asked, model()));
  EXPECT_TRUE(launch_plan_from_json(to_json(LaunchPlan{.tail = true})).tail);
  EXPECT_FALSE(launch_plan_from_json(to_json(LaunchPlan{})).tail);
}

TEST(SweepPlan, OfAShardHasEveryRowOfThePlan) {
  SweepRequest asked = request();
  asked.shard = Shard{.index = 2, .count = 3};
  EXPECT_EQ(make_sweep(asked, model()).cell_arms.size(), make_sweep(request(), model()).cell_arms.size());
  const LaunchPlan plan{.model = "m", .seed = 7, .fill = "random", .shard = asked.shard};
  EXPECT_EQ(launch_plan_from_json(to_json(plan)).shard, asked.shard);
  EXPECT_EQ(shard_of(RunRecord{.plan_json = to_json(plan)}), asked.shard);
  EXPECT_EQ(launch_plan_from_json(to_json(LaunchPlan{})).shard, std::nullopt);
}

TEST(SweepPlan, RefusesAShardThatHasNoCell) {
  SweepRequest asked = request();
  asked.shard = Shard{.index = 8, .count = 9};
  EXPECT_NO_THROW(make_sweep(asked, model()));
  asked.shard->index = 9;
  try {
    make_sweep(asked, model());
    FAIL() << "nine shards of eight cells were accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("--shard 9/9: the sweep has 8 cells"), std::string::npos) << error.what();
  }
}

TEST(SweepPlan, RefusesASweepNoneOfWhoseCellsFits) {
  SweepRequest asked = request();
  asked.lengths = {129, 4000};
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
  asked.lengths = {125};
  asked.phases = {Phase::decode};
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
}

TEST(SweepPlan, RefusesRequestsThatNoRowCanStandFor) {
  const auto refused = [](void (*bend)(SweepRequest&)) {
    SweepRequest asked = request();
    bend(asked);
    EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
  };
  refused([](SweepRequest& asked) { asked.arms = {}; });
  refused([](SweepRequest& asked) { asked.arms = {"causal", "causal,+kv-grow,-kv-grow"}; });
  refused([](SweepRequest& asked) { asked.arms = {"no-such-preset"}; });
  refused([](SweepRequest& asked) { asked.ablate = "add-two"; });
  refused([](SweepRequest& asked) { asked.arms = {"causal,+kv-grow", "causal"}, asked.ablate = "leave-one-out"; });
  refused([](SweepRequest& asked) { asked.arms = {"causal"}, asked.ablate = "leave-one-out"; });
  refused([](SweepRequest& asked) { asked.baseline = "causal,+kv-grow"; });
  refused([](SweepRequest& asked) { asked.launches = 0; });
  refused([](SweepRequest& asked) { asked.blocks = 0; });
  refused([](SweepRequest& asked) { asked.threads = -1; });
  refused([](SweepRequest& asked) { asked.dtype = "float8"; });
}

TEST(SweepPlan, TakesAnotherBaselineThanTheFirstArm) {
  SweepRequest asked = request();
  asked.baseline = "bigcode,-kv-grow,+kv-grow";
  const RunData data = make_sweep(asked, model());
  EXPECT_FALSE(data.arms[0].baseline);
  EXPECT_TRUE(data.arms[1].baseline);
}

TEST(SweepPlan, HasARowForEverySwitchOfAnAblationAlsoForThoseThatCannotBeTurned) {
  SweepRequest asked = request();
  asked.arms = {"bigcode"};
  asked.ablate = "add-one";
  const RunData data = make_sweep(asked, model());
  ASSERT_FALSE(data.arms.empty());
  EXPECT_EQ(data.arms[0].label, "bigcode");
  EXPECT_TRUE(data.arms[0].baseline);
  EXPECT_EQ(data.cell_arms.size(), data.cells.size() * data.arms.size());
  const auto taken = std::ranges::find(data.arms, "bigcode,+kv-preallocated", &ArmRecord::label);
  ASSERT_NE(taken, data.arms.end());
  for (const CellArmRecord& row : data.cell_arms) {
    if (row.arm_id == taken - data.arms.begin()) {
      EXPECT_EQ(row.status, RowStatus::unsupported);
      EXPECT_NE(row.reason.find("'kv-grow' and 'kv-preallocated' both bind the slot 'kv_growth'"), std::string::npos)
          << row.reason;
    }
  }
}

TEST(SweepPlan, AblatesItsDefaultArmBesideOtherArms) {
  SweepRequest asked = request();
  asked.arms = {};
  asked.ablate = "add-one";
  const RunData added = make_sweep(asked, model());
  EXPECT_EQ(added.arms[0].label, "causal");
  EXPECT_NE(std::ranges::find(added.arms, "causal,+kv-grow", &ArmRecord::label), added.arms.end());
  asked.arms = {"bigcode", "causal"};
  asked.ablate = "leave-one-out";
  const RunData removed = make_sweep(asked, model());
  EXPECT_EQ(removed.arms.front().label, "bigcode");
  EXPECT_EQ(removed.arms.back().label, "causal");
  EXPECT_NE(std::ranges::find(removed.arms, "bigcode,-kv-grow", &ArmRecord::label), removed.arms.end());
}

TEST(LaunchPlan, SurvivesJson) {
  const LaunchPlan plan{.model = "a \"model\"",
                        .checkpoint = "/x/y",
                        .dtype = "bf16",
                        .device = "cpu",
                        .threads = 2,
                        .seed = 7,
                        .max_tokens = 5,
                        .fill = "random",
                        .ablate = "add-one"};
  const LaunchPlan back = launch_plan_from_json(to_json(plan));
  EXPECT_EQ(to_json(back), to_json(plan));
  EXPECT_EQ(back.model, plan.model);
  EXPECT_EQ(back.ablate, plan.ablate);
  EXPECT_THROW(launch_plan_from_json("{}"), std::invalid_argument);
  EXPECT_THROW(launch_plan_from_json("rubbish"), std::invalid_argument);
}

TEST(PriorStepSeconds, GrowsWithTheWork) {
  const auto seconds = [](Phase phase, std::int64_t batch, std::int64_t length) {
    CellRecord cell;
    cell.phase = phase;
    cell.batch = batch;
    cell.length = length;
    return prior_step_seconds(cell, model(), 16);
  };
  EXPECT_LT(seconds(Phase::prefill, 1, 16), seconds(Phase::prefill, 8, 64));
  EXPECT_LT(seconds(Phase::decode, 1, 64), seconds(Phase::generate, 1, 64));
}

TEST(SweepPlan, HasACellForEachRateOfRequestsAndWhatIsTimedOfIt) {
  SweepRequest asked = request();
  asked.phases = {Phase::batching};
  asked.batches = {4};
  asked.lengths = {16};
  asked.request_rates = {0, 2.5};
  std::vector<std::string> scopes;
  for (const CellRecord& cell : make_sweep(asked, model()).cells) {
    scopes.push_back(cell.scope);
  }
  EXPECT_EQ(scopes, (std::vector<std::string>{"served", "first-token", "between-tokens", "served-at-2.5",
                                              "first-token-at-2.5", "between-tokens-at-2.5"}));
  asked.goodput = {.ttft_ms = 200, .tpot_ms = 50};
  const std::vector<CellRecord> limited = make_sweep(asked, model()).cells;
  ASSERT_EQ(limited.size(), 8U);
  EXPECT_EQ(limited[3].scope, "good-ttft200-tpot50");
  EXPECT_EQ(limited[7].scope, "good-ttft200-tpot50-at-2.5");
  asked.lengths = {90};  // The longest prompt is half as long again, and has 128 positions for its completion.
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
}

TEST(SweepPlan, HasSamplesOfPromptsButNotOfKeys) {
  SweepRequest asked = request();
  asked.scope.samples = 3;
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument) << "a decode cell has no prompts";
  asked.phases = {Phase::prefill};
  EXPECT_EQ(make_sweep(asked, model()).cells.front().scope, "step-samples-3");
  asked.scope.samples = 0;
  EXPECT_THROW(make_sweep(asked, model()), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
