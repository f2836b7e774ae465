// A launch on arms that are made up: what is checked before timing, what becomes a row, and what survives.
#include "bench/measure/launch_runner.h"

#include "bench/measure/steps.h"
#include "reports/store/flags.h"
#include "tests/bench/measure/launch_runner_fixture.h"

namespace decodelab {
namespace {

using testing::LaunchRunnerTest;

TEST_F(LaunchRunnerTest, MakesNoWorkerForAnArmThatThePlanRuledOut) {
  ruled_out_ = "bigcode,+kv-static";
  add_run({"causal", "bigcode", ruled_out_}, {2, 4});
  EXPECT_EQ(launch(0), LaunchEnd::complete);
  EXPECT_EQ(made_, (std::vector<std::string>{"causal", "bigcode"}));
  EXPECT_EQ(row("bigcode").status, RowStatus::ok);
  EXPECT_EQ(row(ruled_out_, 1).status, RowStatus::unsupported);
}

TEST_F(LaunchRunnerTest, GoesOnWithTheOthersWhenAnArmCannotBeMade) {
  add_run({"causal", "packs", "bigcode"}, {2, 4});
  behaviours_["packs"].cannot_be_made = true;
  EXPECT_EQ(launch(0), LaunchEnd::complete);
  EXPECT_EQ(launch(1), LaunchEnd::complete);
  EXPECT_EQ(std::ranges::count(made_, "packs"), 1) << "the second launch knows";
  for (const std::size_t cell : {0U, 1U}) {
    EXPECT_EQ(row("packs", cell).status, RowStatus::oom);
    EXPECT_EQ(row("packs", cell).reason, "not enough memory: packed weights");
    EXPECT_EQ(row("bigcode", cell).status, RowStatus::ok);
  }
}

TEST_F(LaunchRunnerTest, ProvesNoArmRightWhereTheReferenceCannotBeMade) {
  behaviours_["causal"].cannot_be_made = true;
  add_run({"causal", "bigcode"});
  EXPECT_EQ(launch(0), LaunchEnd::complete);
  EXPECT_EQ(row("causal").status, RowStatus::oom);
  EXPECT_EQ(row("bigcode").status, RowStatus::failed);
  EXPECT_NE(row("bigcode").reason.find("not enough memory: packed weights"), std::string::npos);
  EXPECT_TRUE(log_.visits.empty());
}

TEST_F(LaunchRunnerTest, StoresMirroredBlocksOfEveryArm) {
  add_run({"causal", "a", "b"});
  EXPECT_EQ(launch(0), LaunchEnd::complete);
  EXPECT_EQ(launch(1), LaunchEnd::complete);
  const RunData data = store_->load_run(run_);
  ASSERT_EQ(data.blocks.size(), 4u);
  for (const BlockRecord& block : data.blocks) {
    ASSERT_EQ(block.visits.size(), 6u);
    for (std::size_t visit = 0; visit < 3; ++visit) {
      EXPECT_EQ(block.visits[visit].arm_id, block.visits[5 - visit].arm_id);
    }
    EXPECT_EQ(block.visits[1].previous_arm_id, block.visits[0].arm_id);
    EXPECT_EQ(static_cast<std::int64_t>(block.visits[0].samples_ns.size()), data.cells[0].steps);
  }
  EXPECT_EQ(row("a").status, RowStatus::ok);
  EXPECT_EQ(row("a").peak_bytes, 1000);
}

TEST_F(LaunchRunnerTest, GivesEveryLaunchAsManyBlocksAsTheStartOfTheFirstAsksFor) {
  for (const bool slow_start : {false, true}) {
    behaviours_["a"].start = std::chrono::milliseconds(slow_start ? 500 : 0);
    add_run({"causal", "a"}, {2, 4}, kFittedBlocks);
    EXPECT_EQ(launch(0), LaunchEnd::complete);
    const std::int64_t fitted = store_->load_run(run_).run.blocks_per_launch;
    EXPECT_TRUE(slow_start ? fitted > 1 && fitted <= kMostFittedBlocks : fitted == 1) << fitted;
    behaviours_["a"].start = std::chrono::milliseconds(0);
    EXPECT_EQ(launch(1), LaunchEnd::complete);
    const RunData data = store_->load_run(run_);
    EXPECT_EQ(data.run.blocks_per_launch, fitted) << "launches are alike";
    EXPECT_EQ(static_cast<std::int64_t>(data.blocks.size()), 2 * 2 * fitted);
  }
}

TEST_F(LaunchRunnerTest, GivesNoLaunchMoreBlocksThanFitIntoItsTime) {
  behaviours_["a"].start = std::chrono::milliseconds(500);
  fitted_seconds_ = 0.1;
  add_run({"causal", "a"}, {2, 4}, kFittedBlocks);
  EXPECT_EQ(launch(0), LaunchEnd::complete);
  EXPECT_EQ(store_->load_run(run_).run.blocks_per_launch, 1);
}

TEST_F(LaunchRunnerTest, CountsTheChecksInWhatALaunchTakesBesideItsBlocks) {
  behaviours_["a"].start = std::chrono::milliseconds(100);
  fitted_seconds_ = 0.9;
  std::map<int, std::int64_t> fitted;  // by the milliseconds that a check takes
  for (const int check : {0, 500}) {
    behaviours_["a"].outputs = std::chrono::milliseconds(check);
    add_run({"causal", "a"}, {2, 4}, kFittedBlocks);
    EXPECT_EQ(launch(0), LaunchEnd::complete);
    fitted[check] = store_->load_run(run_).run.blocks_per_launch;
  }
  EXPECT_GT(fitted[0], 1);
  EXPECT_EQ(fitted[500], 1) << "the checks of two cells take a second";
}

TEST_F(LaunchRunnerTest, RunsTheArmsOfHalfABlockInSlicesForthAndBack) {
  slice_ns_ = 30'000'000;  // of 64 steps of a millisecond
  add_run({"causal", "a", "b"}, {2}, 1);
  launch(0);
  const RunData data = store_->load_run(run_);
  EXPECT_EQ(data.cells[0].slice_steps, 31);
  ASSERT_EQ(log_.slices.size(), 2U * 3 * 3) << "two halves, three rounds, three arms";
  for (std::size_t place = 0; place < 3; ++place) {
    const std::string arm = log_.visits[place];
    EXPECT_EQ(log_.slices[place], arm + " 31");
    EXPECT_EQ(log_.slices[5 - place], arm + " 31") << "the second round goes back";
    EXPECT_EQ(log_.slices[6 + place], arm + " 2") << "what is left";
    EXPECT_EQ(log_.visits[5 - place], arm) << "the second half of a block mirrors the first";
    EXPECT_EQ(log_.slices[9 + place], log_.visits[3 + place] + " 31");
  }
  for (const VisitRecord& visit : data.blocks.at(0).visits) {
    EXPECT_EQ(std::ssize(visit.samples_ns), data.cells[0].steps);
    EXPECT_EQ(visit.wall_ns, 64'000'000);
    EXPECT_EQ(visit.previous_arm_id, 0);
  }
  EXPECT_EQ(row("a").flags, std::vector<std::string>());
}

TEST_F(LaunchRunnerTest, RunsWholeVisitsWhereAnArmHasNoSlicesOrAllTogetherNeedTooMuchMemory) {
  slice_ns_ = 30'000'000;
  for (const bool too_large : {false, true}) {
    behaviours_["a"] = {.bytes = too_large ? 300'000 : 1000, .times_slices = too_large};
    add_run({"causal", "a"}, {2}, 1);
    log_.slices.clear();
    launch(0);
    EXPECT_EQ(store_->load_run(run_).cells[0].slice_steps, 64);
    EXPECT_EQ(log_.slices.size(), 4U);
    EXPECT_EQ(row("causal").flags, std::vector<std::string>{kWholeVisitsFlag});
    EXPECT_EQ(row("a").flags, std::vector<std::string>{kWholeVisitsFlag});
  }
}

TEST_F(LaunchRunnerTest, MarksRowsAsTheirCountersAndVisitsSay) {
  behaviours_["bundles"].counters = {{kBundledTokens, 3}};
  behaviours_["later"].flags = {kTokensBundledFlag};
  add_run({"causal", "bundles", "later"}, {2}, 2);
  launch(0);
  launch(1);
  EXPECT_EQ(row("bundles").flags, std::vector<std::string>{kTokensBundledFlag});
  EXPECT_EQ(row("later").flags, std::vector<std::string>{kTokensBundledFlag}) << "once, however often it was said";
  EXPECT_EQ(row("causal").flags, std::vector<std::string>());
}

TEST_F(LaunchRunnerTest, RunsAContinuationInRoundsAndGivesTheNextToTheArmThatIsTheFurthestBehind) {
  slice_ns_ = 4'000'000;
  phase_ = Phase::continuation;
  behaviours_["causal"] = {.step_ns = 1'200'000'000, .rounds = 4};
  behaviours_["guesses"] = {.step_ns = 900'000'000, .rounds = 2};
  add_run({"causal", "guesses"}, {2}, 1);
  launch(0);
  const RunData data = store_->load_run(run_);
  EXPECT_TRUE(data.cells[0].in_rounds());
  ASSERT_EQ(log_.slices.size(), 2U * (4 + 2));
  // Halves, then ends: neither arm is ever ahead by more than one of its rounds.
  for (const std::size_t half : {0U, 6U}) {
    const auto begin = log_.slices.begin() + static_cast<std::ptrdiff_t>(half);
    EXPECT_EQ(std::count(begin, begin + 3, "guesses round"), 1);
    EXPECT_EQ(std::count(begin, begin + 6, "guesses round"), 2);
  }
  for (const VisitRecord& visit : data.blocks.at(0).visits) {
    const bool guesses = visit.arm_id == data.arms[1].id;
    EXPECT_EQ(visit.samples_ns, std::vector<std::int64_t>{guesses ? 900'000'000 : 1'200'000'000});
    EXPECT_EQ(visit.wall_ns, guesses ? 900'000'000 : 1'200'000'000);
    EXPECT_EQ(visit.previous_arm_id, 0);
  }
  EXPECT_EQ(row("guesses").flags, std::vector<std::string>());
}

TEST_F(LaunchRunnerTest, RunsAContinuationOfAnArmThatHasNoRoundsInOneTurn) {
  slice_ns_ = 4'000'000;
  phase_ = Phase::continuation;
  for (const bool two : {true, false}) {
    behaviours_["causal"] = {.step_ns = 1'200'000'000, .rounds = 4};
    behaviours_["guesses"] = {.step_ns = 900'000'000, .rounds = two ? 2 : 0};
    behaviours_["server"] = {.step_ns = 1'200'000'000};
    add_run({"causal", "guesses", "server"}, {2}, 1);
    log_.slices.clear();
    launch(0);
    EXPECT_EQ(store_->load_run(run_).cells[0].in_rounds(), two) << "an arm alone has nobody to take turns with";
    EXPECT_EQ(std::ranges::count(log_.slices, "server 1"), 2);
    EXPECT_EQ(std::ranges::count(log_.slices, "causal round"), two ? 8 : 0);
    EXPECT_EQ(row("server").flags, std::vector<std::string>(two ? 1 : 0, kWholeVisitsFlag));
    EXPECT_EQ(row("causal").flags, std::vector<std::string>());
  }
}

TEST_F(LaunchRunnerTest, GoesOnWithTheOthersWhenAnArmThrowsBetweenSlices) {
  slice_ns_ = 10'000'000;
  add_run({"causal", "dies"});
  behaviours_["dies"].throws_in_visit = 1;
  launch(0);
  EXPECT_EQ(row("dies").status, RowStatus::oom);
  EXPECT_EQ(row("causal").status, RowStatus::ok);
  ASSERT_EQ(store_->load_run(run_).blocks.size(), 2U);
  EXPECT_EQ(store_->load_run(run_).blocks[0].visits.size(), 2U);
}

TEST_F(LaunchRunnerTest, MeasuresTheCellsOfAShardAloneAndInTheOrdersOfTheWholePlan) {
  // (launch, block, batch of the cell) and the arms in the order of their visits.
  using Orders = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<std::string>>;
  const auto measure = [&](const std::string& plan_json) {
    add_run({"causal", "a", "b", "c"}, {1, 2, 3, 4, 5}, 3, plan_json);
    launch(0);
    launch(1);
    const RunData data = store_->load_run(run_);
    const auto cell_of = [&](std::int64_t id) { return *std::ranges::find(data.cells, id, &CellRecord::id); };
    Orders orders;
    for (const BlockRecord& block : data.blocks) {
      auto& order = orders[{block.launch, block.block, cell_of(block.cell_id).batch}];
      for (const VisitRecord& visit : block.visits) {
        order.push_back(std::ranges::find(data.arms, visit.arm_id, &ArmRecord::id)->label);
      }
    }
    for (const CellArmRecord& row : data.cell_arms) {
      const bool measured = orders.contains({0, 0, cell_of(row.cell_id).batch});
      EXPECT_EQ(row.status, measured ? RowStatus::ok : RowStatus::planned);
    }
    return orders;
  };
  const Orders whole = measure("");
  Orders first = measure(R"({"shard":"1/2"})");
  const Orders second = measure(R"({"shard":"2/2"})");
  EXPECT_EQ(first.size(), 18u);   // batches 1, 3, 5
  EXPECT_EQ(second.size(), 12u);  // batches 2, 4
  first.insert(second.begin(), second.end());
  EXPECT_EQ(first, whole);
}

TEST_F(LaunchRunnerTest, UsesTheReferenceAsOracleEvenWhenItIsNoArm) {
  add_run({"a", "b"});
  behaviours_["causal"].token = 1;
  launch(0);
  EXPECT_EQ(row("a").status, RowStatus::incorrect);
  EXPECT_EQ(row("b").status, RowStatus::incorrect);
}

TEST_F(LaunchRunnerTest, NeverTimesAnArmThatIsWrong) {
  add_run({"causal", "wrong"});
  behaviours_["wrong"].token = 2;
  launch(0);
  EXPECT_EQ(row("wrong").status, RowStatus::incorrect);
  EXPECT_FALSE(row("wrong").reason.empty());
  EXPECT_EQ(row("causal").status, RowStatus::ok);
  EXPECT_EQ(std::count(log_.visits.begin(), log_.visits.end(), "wrong"), 0);
}

TEST_F(LaunchRunnerTest, NeverTriesACellThatDoesNotFitIntoMemory) {
  add_run({"causal", "large"}, {1, 4});
  behaviours_["large"].bytes = 300'000;
  launch(0);
  EXPECT_EQ(row("large", 0).status, RowStatus::ok);
  EXPECT_EQ(row("large", 1).status, RowStatus::oom);
  EXPECT_EQ(std::count(log_.outputs.begin(), log_.outputs.end(), "large b4"), 0);
  EXPECT_EQ(row("causal", 1).status, RowStatus::ok);
}

TEST_F(LaunchRunnerTest, VerifiesAtASmallerSizeWhereTheReferenceDoesNotFit) {
  add_run({"causal", "small"}, {8});
  behaviours_["causal"].bytes = 300'000;
  launch(0);
  EXPECT_EQ(row("causal").status, RowStatus::oom);
  EXPECT_EQ(row("small").status, RowStatus::ok);
  EXPECT_EQ(row("small").flags, (std::vector<std::string>{"verified-at-b2-l16"}));
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"causal b2", "small b2"}));
}

TEST_F(LaunchRunnerTest, MakesARowOfAnArmThatThrows) {
  add_run({"causal", "broken"});
  behaviours_["broken"].throws_in_outputs = true;
  launch(0);
  EXPECT_EQ(row("broken").status, RowStatus::failed);
  EXPECT_EQ(row("broken").reason, "this arm is broken");
  EXPECT_EQ(row("causal").status, RowStatus::ok);
}

TEST_F(LaunchRunnerTest, TimesNothingThatNoReferenceVouchesFor) {
  add_run({"a"});
  behaviours_["causal"].throws_in_outputs = true;
  launch(0);
  EXPECT_EQ(row("a").status, RowStatus::failed);
  EXPECT_NE(row("a").reason.find("the reference failed here"), std::string::npos);
  EXPECT_TRUE(log_.visits.empty());
}

TEST_F(LaunchRunnerTest, GoesOnWithTheOthersWhenAnArmThrowsInABlock) {
  add_run({"causal", "dies"});
  behaviours_["dies"].throws_in_visit = 3;
  launch(0);
  EXPECT_EQ(row("dies").status, RowStatus::oom);
  EXPECT_EQ(row("causal").status, RowStatus::ok);
  const RunData data = store_->load_run(run_);
  ASSERT_EQ(data.blocks.size(), 2u);
  EXPECT_EQ(data.blocks[0].visits.size(), 4u);
  EXPECT_EQ(data.blocks[1].visits.size(), 2u);
}

TEST_F(LaunchRunnerTest, FixesTheStepsByTheSlowestArm) {
  add_run({"causal", "slow"});
  behaviours_["slow"].step_ns = 20'000'000;
  launch(0);
  EXPECT_EQ(store_->load_run(run_).cells[0].steps, plan_steps(20'000'000).steps);
}

TEST_F(LaunchRunnerTest, FlagsARowWhoseVisitsHoldNoWholePeriod) {
  add_run({"causal"});
  behaviours_["causal"].step_ns = 1'000'000'000;
  launch(0);
  EXPECT_EQ(row("causal").flags, (std::vector<std::string>{kPeriodNotCoveredFlag}));
}

TEST_F(LaunchRunnerTest, StopsBetweenPiecesAndResumesWithWhatIsLeft) {
  add_run({"causal", "a"}, {1, 2, 3});
  EXPECT_EQ(launch(0, 5), LaunchEnd::stopped);  // three checks, two blocks
  EXPECT_EQ(store_->load_run(run_).blocks.size(), 2u);
  EXPECT_EQ(launch(0), LaunchEnd::complete);
  EXPECT_EQ(store_->load_run(run_).blocks.size(), 6u);
  EXPECT_EQ(log_.outputs.size(), 9u + 3 * 2) << "the second process holds both arms of each cell against the first";
}

}  // namespace
}  // namespace decodelab
