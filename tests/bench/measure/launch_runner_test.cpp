// A launch on arms that are made up: what is checked before timing, what becomes a row, and what survives.
#include "bench/measure/launch_runner.h"

#include "bench/measure/steps.h"
#include "tests/temporary_folder.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

namespace decodelab {
namespace {

/// What a made-up arm does.
struct Behaviour {
  std::int64_t step_ns = 1'000'000;
  std::int64_t bytes = 1000;  ///< For a batch of 1.
  std::int64_t token = 3;     ///< What it chooses in every step.
  bool throws_in_outputs = false;
  int throws_in_visit = -1;  ///< Number of the visit that throws.
  bool takes_turns = true;
  std::chrono::milliseconds start{0};
  bool cannot_be_made = false;
  std::int64_t filling_ns = 0;  ///< What it says that it spent on each fill.
};

struct Log {
  std::vector<std::string> outputs;  ///< "arm bN" for each call
  std::vector<std::string> visits;
  std::vector<std::string> turns;  ///< "arm steps" for each turn
};

class FakeWorker final : public Worker {
 public:
  FakeWorker(std::string label, Behaviour behaviour, Log& log)
      : label_(std::move(label)), behaviour_(behaviour), log_(log) {}

  void start() override { std::this_thread::sleep_for(behaviour_.start); }
  std::int64_t bytes_needed(const CellRecord& cell) const override { return behaviour_.bytes * cell.batch; }
  OutputTrace outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace*) override {
    log_.outputs.push_back(label_ + " b" + std::to_string(cell.batch));
    side_.filling_ns += behaviour_.filling_ns;
    if (behaviour_.throws_in_outputs) {
      throw std::runtime_error("this arm is broken\nand this line is a stack trace");
    }
    OutputTrace trace{.first = {}, .tokens = {}, .logits = {}, .batch = cell.batch, .vocabulary = 4};
    for (std::int64_t step = 0; step < steps; ++step) {
      trace.tokens.emplace_back(static_cast<std::size_t>(cell.batch), behaviour_.token);
    }
    return trace;
  }
  Probe probe(const CellRecord&) override { return {.peak_bytes = behaviour_.bytes, .step_ns = behaviour_.step_ns}; }
  bool takes_turns() const override { return behaviour_.takes_turns; }
  SideWork side_work() const override { return side_; }
  std::unique_ptr<OpenVisit> open_visit(const CellRecord&) override { return std::make_unique<Visit>(*this); }

 private:
  class Visit final : public OpenVisit {
   public:
    explicit Visit(FakeWorker& worker) : worker_(worker) {
      if (worker.visits_++ == worker.behaviour_.throws_in_visit) {
        throw std::bad_alloc();
      }
      worker.log_.visits.push_back(worker.label_);
      worker.side_.filling_ns += worker.behaviour_.filling_ns;
      times_ = {.warmup_steps = 2, .quiet = true, .wall_ns = 0, .samples_ns = {}};
    }
    void turn(std::int64_t steps) override {
      worker_.log_.turns.push_back(worker_.label_ + " " + std::to_string(steps));
      times_.wall_ns += worker_.behaviour_.step_ns * steps;
      times_.samples_ns.resize(times_.samples_ns.size() + static_cast<std::size_t>(steps), worker_.behaviour_.step_ns);
    }
    const VisitTimes& times() const override { return times_; }

   private:
    FakeWorker& worker_;
    VisitTimes times_;
  };

  std::string label_;
  Behaviour behaviour_;
  Log& log_;
  SideWork side_;
  int visits_ = 0;
};

class LaunchRunnerTest : public ::testing::Test {
 protected:
  LaunchRunnerTest() { store_.emplace(folder_ / "store.sqlite", StoreAccess::write); }

  /// A run of one decode cell of the given batch for each of `batches`.
  void add_run(const std::vector<std::string>& arms, const std::vector<std::int64_t>& batches = {2},
               std::int64_t blocks = 2, const std::string& plan_json = "") {
    RunData data;
    data.run.plan_json = plan_json;
    data.run.seed = 1;
    data.run.launches = 2;
    data.run.blocks_per_launch = blocks;
    data.run.model.positions = 2048;
    for (const std::string& arm : arms) {
      data.arms.push_back({.id = 0, .label = arm, .baseline = arm == arms.front()});
    }
    for (const std::int64_t batch : batches) {
      data.cells.push_back(
          {.phase = "decode", .batch = batch, .length = 16, .dtype = "fp32", .device = "cpu", .threads = 1});
      for (std::size_t arm = 0; arm < arms.size(); ++arm) {
        data.cell_arms.push_back(
            {.cell_id = static_cast<std::int64_t>(data.cells.size() - 1), .arm_id = static_cast<std::int64_t>(arm)});
        if (arms[arm] == ruled_out_) {
          data.cell_arms.back().status = RowStatus::unsupported;
        }
      }
    }
    store_->add_run(data);
    run_ = data.run.id;
  }

  LaunchEnd launch(std::int64_t index, int stop_after_pieces = -1) {
    int pieces = 0;
    const LaunchContext context{
        .make_worker =
            [&](const ArmRecord& arm) {
              made_.push_back(arm.label);
              if (behaviours_[arm.label].cannot_be_made) {
                throw std::runtime_error("not enough memory: packed weights");
              }
              return std::make_unique<FakeWorker>(arm.label, behaviours_[arm.label], log_);
            },
        .available_memory_bytes = [&] { return available_; },
        .piece_started = [](const LaunchPiece&) {},
        .piece_done = [&](const LaunchPiece&, double) { ++pieces; },
        .arm_started = [](std::int64_t) {},
        .stop_requested = [&] { return stop_after_pieces >= 0 && pieces >= stop_after_pieces; },
        .visits = {.turn_ns = turn_ns_},
        .fitted_seconds = fitted_seconds_,
    };
    return run_launch(*store_, run_, index, context);
  }

  CellArmRecord row(const std::string& arm, std::size_t cell = 0) {
    const RunData data = store_->load_run(run_);
    const std::int64_t arm_id = std::find_if(data.arms.begin(), data.arms.end(), [&](const ArmRecord& record) {
                                  return record.label == arm;
                                })->id;
    return *std::find_if(data.cell_arms.begin(), data.cell_arms.end(), [&](const CellArmRecord& record) {
      return record.arm_id == arm_id && record.cell_id == data.cells[cell].id;
    });
  }

  testing::TemporaryFolder folder_;
  std::optional<Store> store_;
  std::int64_t run_ = 0;
  std::map<std::string, Behaviour> behaviours_;
  std::int64_t available_ = 1'000'000;
  Log log_;
  std::int64_t turn_ns_ = 0;
  double fitted_seconds_ = std::numeric_limits<double>::infinity();
  std::string ruled_out_;          ///< An arm all of whose rows add_run() makes unsupported.
  std::vector<std::string> made_;  ///< Arms that workers were made for.
};

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

TEST_F(LaunchRunnerTest, LetsTheArmsOfHalfABlockTakeTurnsForthAndBack) {
  turn_ns_ = 30'000'000;  // of 64 steps of a millisecond
  add_run({"causal", "a", "b"}, {2}, 1);
  launch(0);
  const RunData data = store_->load_run(run_);
  EXPECT_EQ(data.cells[0].turn_steps, 31);
  ASSERT_EQ(log_.turns.size(), 2U * 3 * 3) << "two halves, three rounds, three arms";
  for (std::size_t place = 0; place < 3; ++place) {
    const std::string arm = log_.visits[place];
    EXPECT_EQ(log_.turns[place], arm + " 31");
    EXPECT_EQ(log_.turns[5 - place], arm + " 31") << "the second round goes back";
    EXPECT_EQ(log_.turns[6 + place], arm + " 2") << "what is left";
    EXPECT_EQ(log_.visits[5 - place], arm) << "the second half of a block mirrors the first";
    EXPECT_EQ(log_.turns[9 + place], log_.visits[3 + place] + " 31");
  }
  for (const VisitRecord& visit : data.blocks.at(0).visits) {
    EXPECT_EQ(std::ssize(visit.samples_ns), data.cells[0].steps);
    EXPECT_EQ(visit.wall_ns, 64'000'000);
    EXPECT_EQ(visit.previous_arm_id, 0);
  }
  EXPECT_EQ(row("a").flags, std::vector<std::string>());
}

TEST_F(LaunchRunnerTest, RunsWholeVisitsWhereAnArmTakesNoTurnsOrAllTogetherNeedTooMuchMemory) {
  turn_ns_ = 30'000'000;
  for (const bool too_large : {false, true}) {
    behaviours_["a"] = {.bytes = too_large ? 300'000 : 1000, .takes_turns = too_large};
    add_run({"causal", "a"}, {2}, 1);
    log_.turns.clear();
    launch(0);
    EXPECT_EQ(store_->load_run(run_).cells[0].turn_steps, 64);
    EXPECT_EQ(log_.turns.size(), 4U);
    EXPECT_EQ(row("causal").flags, std::vector<std::string>{kWholeVisitsFlag});
    EXPECT_EQ(row("a").flags, std::vector<std::string>{kWholeVisitsFlag});
  }
}

TEST_F(LaunchRunnerTest, GoesOnWithTheOthersWhenAnArmThrowsWhileAllTakeTurns) {
  turn_ns_ = 10'000'000;
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

TEST_F(LaunchRunnerTest, ChecksACellOnceARunAndHoldsLaterLaunchesAgainstWhatWasProved) {
  add_run({"a", "b"});
  launch(0);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"causal b2", "a b2", "b b2"}));
  log_.outputs.clear();
  made_.clear();
  launch(1);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"a b2", "b b2"}))
      << "before their first block, without a reference";
  EXPECT_EQ(made_, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(row("a").status, RowStatus::ok);
  EXPECT_EQ(store_->load_run(run_).blocks.size(), 4u);
}

TEST_F(LaunchRunnerTest, ComparesAnArmWithTheReferenceAnewWhereItChoosesOtherwise) {
  add_run({"a", "b"});
  launch(0);
  log_ = {};
  // Both the reference and the arm choose another token in this process, as rounding may have it.
  behaviours_["causal"].token = behaviours_["b"].token = 1;
  launch(1);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"a b2", "b b2", "causal b2", "b b2"}));
  EXPECT_EQ(row("a").status, RowStatus::ok);
  EXPECT_EQ(row("b").status, RowStatus::ok);
}

TEST_F(LaunchRunnerTest, TimesNoArmThatBecameWrongInALaterLaunch) {
  add_run({"causal", "b"}, {2}, 1);
  launch(0);
  log_ = {};
  behaviours_["b"].token = 1;
  launch(1);
  EXPECT_EQ(row("b").status, RowStatus::incorrect);
  EXPECT_EQ(row("b").reason, "in launch 2: Step 0, row 0: the arm chose id 1, the reference id 3.");
  EXPECT_EQ(row("causal").status, RowStatus::ok);
  EXPECT_EQ(std::ranges::count(log_.visits, "b"), 0);
  EXPECT_EQ(store_->load_run(run_).blocks.back().visits.size(), 2u);
}

TEST_F(LaunchRunnerTest, ProvesACellAnewWhereAnOlderProgramKeptNoProof) {
  add_run({"a"});
  launch(0);
  SQLite::Database((folder_ / "store.sqlite").string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA foreign_keys = ON; DELETE FROM cell_proofs");
  log_ = {};
  launch(1);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"causal b2", "a b2"}));
  EXPECT_EQ(store_->load_run(run_).proofs.size(), 1u);
}

TEST_F(LaunchRunnerTest, KeepsTheReferencesChoicesAndADigestOfEachArmThatIsRight) {
  add_run({"causal", "wrong", "right"});
  behaviours_["wrong"].token = 2;
  launch(0);
  const RunData data = store_->load_run(run_);
  ASSERT_EQ(data.proofs.size(), 1u);
  const CellProofRecord& proof = data.proofs[0];
  EXPECT_EQ(proof.cell_id, data.cells[0].id);
  EXPECT_EQ(std::pair(proof.batch, proof.length), std::pair(std::int64_t{2}, std::int64_t{16}));
  EXPECT_EQ(proof.tokens, std::vector<std::vector<std::int64_t>>(kVerifiedDecodeSteps, {3, 3}));
  ASSERT_EQ(proof.chosen.size(), 2u);
  EXPECT_EQ(proof.chosen.at(data.arms[0].id), proof.chosen.at(data.arms[2].id)) << "they chose the same";
}

TEST_F(LaunchRunnerTest, KeepsWhatEachArmSpentInALaunch) {
  behaviours_["a"].start = std::chrono::milliseconds(30);
  behaviours_["a"].filling_ns = 2000;
  add_run({"causal", "a"}, {2}, 1);
  launch(0);
  const RunData data = store_->load_run(run_);
  std::map<std::pair<std::int64_t, Activity>, std::int64_t> spent;
  for (const TimeSpentRecord& time : data.times_spent) {
    EXPECT_EQ(time.launch, 0);
    spent[{time.arm_id, time.activity}] = time.ns;
  }
  const std::int64_t a = data.arms[1].id;
  EXPECT_GE((spent[{a, Activity::starting}]), 30'000'000);
  // The made-up steps say what they took, whatever the clock says.
  EXPECT_EQ((spent[{a, Activity::timing}]), 2 * 64 * 1'000'000);
  EXPECT_EQ((spent[{a, Activity::filling}]), 3 * 2000) << "for its outputs and for two visits";
  EXPECT_GT((spent[{a, Activity::checking}]), 0);
  EXPECT_GT((spent[{a, Activity::counting}]), 0);
  launch(1);
  EXPECT_GT(store_->time_spent_ns(run_, 1), 2 * 2 * 64 * 1'000'000);
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
