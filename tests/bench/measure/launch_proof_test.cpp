// What a launch keeps for the launches and runs after it: proofs of its arms, the reference's outputs, and where its
// time went.
#include <SQLiteCpp/SQLiteCpp.h>

#include "bench/measure/launch_runner.h"
#include "reports/store/flags.h"
#include "tests/bench/measure/launch_runner_fixture.h"

namespace decodelab {
namespace {

using LaunchProofTest = testing::LaunchRunnerTest;

TEST_F(LaunchProofTest, ChecksACellOnceARunAndHoldsLaterLaunchesAgainstWhatWasProved) {
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

TEST_F(LaunchProofTest, ComparesAnArmWithTheReferenceAnewWhereItChoosesOtherwise) {
  add_run({"a", "b"});
  launch(0);
  log_ = {};
  // Both the reference and the arm choose another token in this process, as rounding may have it.
  behaviours_["causal"].token = behaviours_["b"].token = 1;
  launch(1);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"a b2", "b b2", "causal b2", "b b2"}))
      << "a chooses as it did, b is compared in full";
  EXPECT_EQ(row("a").status, RowStatus::ok);
  EXPECT_EQ(row("b").status, RowStatus::ok);
}

TEST_F(LaunchProofTest, TimesNoArmThatBecameWrongInALaterLaunch) {
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

TEST_F(LaunchProofTest, TakesTheReferencesOutputsFromAnEarlierRunOfTheSameProgram) {
  kept_ = std::make_shared<const KeptOutputs>(KeptBytes(folder_ / "outputs"), "key");
  add_run({"a", "b"});
  launch(0);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"causal b2", "a b2", "b b2"}));
  log_ = {};
  made_.clear();
  behaviours_["b"].token = 1;
  add_run({"a", "b"});
  launch(0);
  EXPECT_EQ(made_, (std::vector<std::string>{"a", "b"})) << "no reference";
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"a b2", "b b2"}));
  EXPECT_EQ(row("a").status, RowStatus::ok);
  EXPECT_EQ(row("b").status, RowStatus::incorrect) << "every arm is held against them all the same";
}

TEST_F(LaunchProofTest, KeepsNoOutputsOfASmallerCellThanTheOneThatWasAsked) {
  kept_ = std::make_shared<const KeptOutputs>(KeptBytes(folder_ / "outputs"), "key");
  behaviours_["causal"].bytes = 300'000;
  add_run({"small"}, {8});
  launch(0);
  log_ = {};
  behaviours_["causal"].bytes = 1000;
  add_run({"small"}, {8});
  launch(0);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"causal b8", "small b8"}));
}

TEST_F(LaunchProofTest, ProvesACellAnewWhereAnOlderProgramKeptNoProof) {
  add_run({"a"});
  launch(0);
  SQLite::Database((folder_ / "store.sqlite").string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA foreign_keys = ON; DELETE FROM cell_proofs");
  log_ = {};
  launch(1);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"causal b2", "a b2"}));
  EXPECT_EQ(store_->load_run(run_).proofs.size(), 1u);
}

TEST_F(LaunchProofTest, KeepsTheReferencesChoicesAndADigestOfEachArmThatIsRight) {
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

TEST_F(LaunchProofTest, ComparesArmsWithTheReferenceUnderTheSameRequest) {
  behaviours_["causal@samples=2"].token = behaviours_["b@samples=2"].token = 5;
  add_run({"a", "b@samples=2", "causal@samples=2"});
  launch(0);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"causal b2", "causal@samples=2 b2", "a b2", "b@samples=2 b2",
                                                    "causal@samples=2 b2"}));
  for (const char* arm : {"a", "b@samples=2", "causal@samples=2"}) {
    EXPECT_EQ(row(arm).status, RowStatus::ok) << arm << ": " << row(arm).reason;
  }
  const RunData data = store_->load_run(run_);
  ASSERT_EQ(data.proofs.size(), 2u);
  EXPECT_EQ(data.proofs[0].request, "");
  EXPECT_EQ(data.proofs[1].request, "@samples=2");
  EXPECT_EQ(data.proofs[1].chosen.size(), 2u);
  log_ = {};
  behaviours_["b@samples=2"].token = 6;
  launch(1);
  EXPECT_EQ(log_.outputs, (std::vector<std::string>{"a b2", "b@samples=2 b2", "causal@samples=2 b2", "b@samples=2 b2",
                                                    "causal@samples=2 b2"}))
      << "an arm that chooses otherwise is held against the reference under its own request";
  EXPECT_EQ(row("b@samples=2").status, RowStatus::incorrect);
  EXPECT_EQ(row("a").status, RowStatus::ok);
}

TEST_F(LaunchProofTest, AnArmIsRightInFp32WhoseTokensDifferByTiesAlone) {
  const std::vector<float> other_way{0, 0, 1, 0.99995F};
  behaviours_["causal"].logits = {0, 0, 0.99995F, 1};
  behaviours_["ties"] = {.token = 2, .logits = other_way};
  behaviours_["far"] = {.token = 2, .logits = {0, 0, 1, 0.995F}};
  behaviours_["wrong"] = {.token = 2, .logits = other_way, .fed_logits = {0.01F, 0, 1, 0.99995F}};
  add_run({"causal", "ties", "far", "wrong"});
  launch(0);
  EXPECT_EQ(row("ties").status, RowStatus::ok) << row("ties").reason;
  EXPECT_EQ(row("ties").flags, std::vector<std::string>{kNearTieFlag});
  EXPECT_GT(row("ties").ties, 0);
  EXPECT_EQ(row("far").status, RowStatus::incorrect) << "its logits are off by more than the tolerance";
  EXPECT_EQ(row("wrong").status, RowStatus::incorrect) << "fed the reference's tokens it is wrong";
  EXPECT_EQ(row("wrong").reason, "Step 0, row 0: the arm chose id 2, the reference id 3.");
  EXPECT_EQ(std::ranges::count(log_.outputs, "ties b2"), 2);
  EXPECT_EQ(std::ranges::count(log_.outputs, "far b2"), 1) << "fed the reference's tokens only after a near tie";
  launch(1);
  EXPECT_EQ(row("ties").status, RowStatus::ok);
  EXPECT_EQ(std::ranges::count(log_.outputs, "ties b2"), 3) << "it chooses as it did, freely";
}

/// Arms in bf16 whose largest logit is 1, and whose other ones are off by what is said.
class RoundingTest : public LaunchProofTest {
 protected:
  RoundingTest() {
    dtype_ = "bf16";
    fill_ = "generated";
  }

  void off_by(const std::string& arm, float off) { behaviours_[arm].logits = {off, 0, 0, 1}; }
  std::int64_t exact_runs() const { return std::ranges::count(log_.outputs, "exact b2"); }
};

TEST_F(RoundingTest, AnArmBeyondTheToleranceIsRightWhereTheReferenceIsAsFarFromFp32) {
  off_by("exact", 0);
  off_by("causal", 0.04F);
  off_by("other-way", -0.04F);
  off_by("too-far", -0.07F);
  add_run({"causal", "other-way", "too-far"});
  launch(0);
  EXPECT_EQ(row("causal").flags, std::vector<std::string>());
  EXPECT_EQ(row("other-way").status, RowStatus::ok);
  EXPECT_EQ(row("other-way").flags, std::vector<std::string>{kComparedWithFp32Flag});
  EXPECT_EQ(row("too-far").status, RowStatus::incorrect);
  EXPECT_EQ(row("too-far").reason,
            "Step 0, row 0: logits differ by 0.07 of the largest; expected at most 0.06 in bfloat16.");
  EXPECT_EQ(exact_runs(), 1) << "one for all arms of the cell";
}

TEST_F(RoundingTest, Fp32IsNotAskedWhereArmsAgree) {
  off_by("exact", 0);
  off_by("causal", 0.04F);
  off_by("near", 0.02F);
  add_run({"causal", "near"});
  launch(0);
  EXPECT_EQ(row("near").status, RowStatus::ok);
  EXPECT_EQ(exact_runs(), 0);
}

TEST_F(RoundingTest, WithoutFp32TheToleranceStands) {
  off_by("causal", 0.04F);
  off_by("other-way", -0.04F);
  add_run({"causal", "other-way"});
  launch(0);
  EXPECT_EQ(row("other-way").status, RowStatus::incorrect);
  off_by("exact", 0);
  behaviours_["exact"].bytes = available_;
  add_run({"causal", "other-way"});
  launch(0);
  EXPECT_EQ(row("other-way").status, RowStatus::incorrect);
  EXPECT_EQ(exact_runs(), 0) << "it does not fit into memory";
  behaviours_["exact"].bytes = 1000;
  fill_ = "random";
  add_run({"causal", "other-way"});
  launch(0);
  EXPECT_EQ(row("other-way").status, RowStatus::incorrect);
  EXPECT_EQ(exact_runs(), 0) << "its random keys are not those of bf16";
}

TEST_F(RoundingTest, NoRoundingOfTheReferenceExcusesATenthOfTheLargestLogit) {
  off_by("exact", 0);
  off_by("causal", 0.5F);
  off_by("wrong", -0.12F);
  add_run({"causal", "wrong"});
  launch(0);
  EXPECT_EQ(row("wrong").status, RowStatus::incorrect);
}

TEST_F(RoundingTest, OnlyAnArmThatSaysThatItIsLossyMayBeOffByMoreAndInFp32Too) {
  for (const std::string dtype : {"fp32", "bf16"}) {
    dtype_ = dtype;
    off_by("causal", 0);
    off_by("lossy", 0.08F);
    off_by("exact-arm", 0.08F);
    off_by("too-lossy", 0.12F);
    behaviours_["lossy"].logit_bound = behaviours_["too-lossy"].logit_bound = 0.1;
    add_run({"causal", "lossy", "exact-arm", "too-lossy"});
    launch(0);
    EXPECT_EQ(row("lossy").status, RowStatus::ok) << row("lossy").reason;
    EXPECT_EQ(row("lossy").flags, std::vector<std::string>{kLossyFlag});
    EXPECT_NEAR(row("lossy").agreement->logit_error, 0.08, 1e-6) << "its loss stands beside its time";
    EXPECT_EQ(row("exact-arm").status, RowStatus::incorrect);
    EXPECT_EQ(row("too-lossy").status, RowStatus::incorrect);
  }
}

TEST_F(LaunchProofTest, KeepsWhatEachArmSpentInALaunch) {
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

}  // namespace
}  // namespace decodelab
