// Every outcome where its rule asks for it, worst first, and again the same from the store.
#include "reports/statistics/gate.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "reports/store/flags.h"
#include "tests/reports/contains.h"
#include "tests/reports/gate_run.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_trace.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::gate_run;
using testing::message_of;

constexpr std::int64_t kBefore = 1;  // ids of the arms
constexpr std::int64_t kAfter = 2;

CellArmRecord& row_of(RunData& data, std::int64_t arm_id, std::size_t cell = 0) {
  return *std::ranges::find_if(data.cell_arms, [&](const CellArmRecord& row) {
    return row.arm_id == arm_id && row.cell_id == data.cells[cell].id;
  });
}

void count_work(RunData& data) {
  for (CellArmRecord& row : data.cell_arms) {
    row.counters = {{"allocations", 10 * row.cell_id}, {"lm_head_rows", 1}, {"op.aten::cat", 4}};
  }
}

GateDecision decide(const RunData& data, std::size_t looks_done = 0) { return decide_gate(data, {}, looks_done); }

std::string problem_of(const GateDecision& decision) {
  return decision.problems.empty() ? "no problem" : decision.problems.front().words;
}

TEST(Gate, PassesWhatIsNotSlower) {
  const GateDecision decision = decide(gate_run());
  EXPECT_EQ(decision.outcome, GateOutcome::pass) << problem_of(decision);
  EXPECT_EQ(decision.exit_code, 0);
  EXPECT_EQ(decision.gate_blocks, 6U);
  ASSERT_EQ(decision.rows.size(), 3U) << "two cells and the composite";
  EXPECT_FALSE(decision.rows.back().cell.has_value());
  EXPECT_EQ(decision.rows.back().margin, 0.015);
  EXPECT_EQ(decision.rows.front().margin, 0.03);
  EXPECT_EQ(decision.baseline, "before");
  EXPECT_EQ(decision.candidate, "after");
  EXPECT_EQ(decision.plan, gate_plan_hash({}, gate_run().cells));
}

TEST(Gate, FailsWhatIsSlowerByItsMargin) {
  const GateDecision decision = decide(gate_run({.slow_down = 0.06}));
  EXPECT_EQ(decision.outcome, GateOutcome::regression);
  EXPECT_EQ(decision.exit_code, 1);
  EXPECT_EQ(decision.stage, GateStage::time);
  for (const GateRow& row : decision.rows) {
    EXPECT_EQ(row.look.verdict, LookVerdict::slower);
    EXPECT_NEAR(std::expm1(row.look.estimate), 0.06, 0.01);
    EXPECT_LE(row.look.p_family, 0.018);
    EXPECT_GT(row.look.mde.value(), 0.03);
  }
}

TEST(Gate, PassesWhatIsFasterAndAsksPrefillForMore) {
  EXPECT_EQ(decide(gate_run({.slow_down = -0.2})).outcome, GateOutcome::pass);
  const testing::GateRunOptions four_per_cent{
      .phases = {Phase::prefill}, .lengths = {64}, .slow_down = 0.04, .noise = 0.001};
  EXPECT_EQ(decide(gate_run(four_per_cent)).outcome, GateOutcome::pass) << "the margin of prefill is 5 %";
  EXPECT_EQ(decide(gate_run({.phases = {Phase::decode}, .lengths = {64}, .slow_down = 0.04, .noise = 0.001})).outcome,
            GateOutcome::regression);
}

TEST(Gate, FailsForTheCompositeWhereEveryCellStaysBelowItsMargin) {
  const GateDecision decision = decide(gate_run({.lengths = {64, 128, 256, 512}, .slow_down = 0.02, .noise = 0.002}));
  EXPECT_EQ(decision.outcome, GateOutcome::regression);
  EXPECT_EQ(decision.rows.front().look.verdict, LookVerdict::within);
  EXPECT_EQ(decision.rows.back().look.verdict, LookVerdict::slower);
}

TEST(Gate, GoesOnWhileLooksRemainAndIsInconclusiveAfterTheLast) {
  const RunData noisy = gate_run({.gate_blocks = 24, .noise = 0.15, .seed = 4});
  std::size_t looks = 0;
  for (const std::size_t next : {10U, 16U, 24U}) {
    const GateDecision decision = decide(noisy, looks++);
    EXPECT_EQ(decision.outcome, GateOutcome::proceed);
    EXPECT_EQ(decision.exit_code, 0);
    EXPECT_EQ(decision.next_look, next);
    EXPECT_EQ(decision.looks_done, looks);
  }
  const GateDecision last = decide(noisy, looks);
  EXPECT_EQ(last.outcome, GateOutcome::inconclusive);
  EXPECT_EQ(last.exit_code, 3);
  EXPECT_TRUE(contains(problem_of(last), {"24 gate blocks"}));
  EXPECT_TRUE(std::ranges::any_of(last.rows, [](const GateRow& row) { return row.look.more.has_value(); }));
  GatePolicy policy;
  policy.on_inconclusive = OnInconclusive::pass;
  EXPECT_EQ(decide_gate(noisy, policy, 3).exit_code, 0);
  EXPECT_EQ(decide_gate(noisy, policy, 3).outcome, GateOutcome::inconclusive) << "the report says so all the same";
  policy.on_inconclusive = OnInconclusive::fail;
  EXPECT_EQ(decide_gate(noisy, policy, 3).exit_code, 1);
  EXPECT_TRUE(contains(message_of([&] { decide(noisy, 4); }), {"4 looks"}));
}

TEST(Gate, DecidesBeforeTheFirstBlockByCountersAndOutputs) {
  RunData data = gate_run();
  data.blocks.clear();
  EXPECT_EQ(decide(data).outcome, GateOutcome::proceed);
  EXPECT_EQ(decide(data).next_look, 6U);
  EXPECT_EQ(decide(data).looks_done, 0U);
  count_work(data);
  EXPECT_EQ(decide(data).outcome, GateOutcome::proceed);
  row_of(data, kAfter).counters["op.aten::cat"] = 5;
  row_of(data, kAfter, 1).status = RowStatus::incorrect;
  GateDecision decision = decide(data);
  EXPECT_EQ(decision.outcome, GateOutcome::regression) << "counters come first";
  EXPECT_EQ(decision.stage, GateStage::counters);
  EXPECT_EQ(decision.counters.front().findings.front().words, "op.aten::cat rose from 4 to 5");
  count_work(data);
  decision = decide(data);
  EXPECT_EQ(decision.outcome, GateOutcome::outputs_differ);
  EXPECT_EQ(decision.exit_code, 5);
  EXPECT_TRUE(contains(problem_of(decision), {"the candidate is incorrect"}));
}

TEST(Gate, HoldsCountersAgainstAcceptedOnesWhereThereIsAFile) {
  RunData data = gate_run();
  count_work(data);
  RunSummary accepted = summarize(data);
  for (SummaryRow& row : accepted.rows) {
    row.arm.label = "causal";
  }
  GateChecks checks{.accepted_counters = counter_lines(accepted), .accepted_arm = "causal"};
  EXPECT_EQ(decide_gate(data, {}, 0, checks).outcome, GateOutcome::pass);
  EXPECT_TRUE(decide_gate(data, {}, 0, checks).counters.front().accepted);

  row_of(data, kAfter).counters["allocations"] -= 1;
  const GateDecision improved = decide_gate(data, {}, 0, checks);
  EXPECT_EQ(improved.outcome, GateOutcome::pass);
  EXPECT_TRUE(contains(improved.notes.back(), {"decodelab counters", "--accept"}));
  row_of(data, kAfter).counters["lm_head_rows"] = 0;
  EXPECT_EQ(decide_gate(data, {}, 0, checks).exit_code, 1) << "a proof that changed";

  checks.accepted_arm = "another";
  const GateDecision missing = decide_gate(data, {}, 0, checks);
  EXPECT_EQ(missing.exit_code, 4) << "a missing line is never silent";
  EXPECT_EQ(missing.stage, GateStage::counters);
}

TEST(Gate, IsInvalidWhereOneSideWasNotCounted) {
  for (const std::int64_t arm : {kBefore, kAfter}) {
    RunData data = gate_run();
    count_work(data);
    row_of(data, arm).counters.clear();
    const GateDecision decision = decide(data);
    EXPECT_EQ(decision.exit_code, 4);
    EXPECT_TRUE(contains(decision.counters.front().findings.front().words, {"were not counted"}));
  }
  RunData unsteady = gate_run();
  count_work(unsteady);
  row_of(unsteady, kBefore).flags = {std::string(kUnsteadyFlag) + "allocations"};
  EXPECT_EQ(decide(unsteady).exit_code, 4);
}

TEST(Gate, IsInvalidWhereSomethingIsMissing) {
  struct Case {
    const char* words;
    void (*damage)(RunData&);
  };
  const Case cases[] = {
      {"--quick", [](RunData& data) { data.run.quick = true; }},
      {"no cell", [](RunData& data) { data.cells.clear(); }},
      {"marked as the baseline", [](RunData& data) { data.arms[0].baseline = false, data.arms.pop_back(); }},
      {"no candidate", [](RunData& data) { data.arms.pop_back(); }},
      {"two candidates", [](RunData& data) { data.arms.push_back({9, "third", false}); }},
      {"two baselines", [](RunData& data) { data.arms[1].baseline = true; }},
      {"the candidate has no row", [](RunData& data) { data.cell_arms.pop_back(); }},
      {"the candidate is oom: no memory",
       [](RunData& data) {
         row_of(data, kAfter).status = RowStatus::oom;
         row_of(data, kAfter).reason = "no memory";
       }},
      {"the baseline is not-engaged", [](RunData& data) { row_of(data, kBefore).engaged = false; }},
      {"launch 3 has no block",
       [](RunData& data) {
         std::erase_if(data.blocks,
                       [&](const BlockRecord& b) { return b.launch == 3 && b.cell_id == data.cells[0].id; });
       }},
      {"the candidate has no times in launch 5",
       [](RunData& data) {
         for (BlockRecord& block : data.blocks) {
           if (block.launch == 5) {
             std::erase_if(block.visits, [](const VisitRecord& v) { return v.arm_id == kAfter; });
           }
         }
       }},
  };
  for (const Case& wrong : cases) {
    RunData data = gate_run();
    wrong.damage(data);
    const GateDecision decision = decide(data);
    EXPECT_EQ(decision.exit_code, 4) << wrong.words;
    EXPECT_EQ(decision.outcome, GateOutcome::invalid) << wrong.words;
    EXPECT_TRUE(contains(problem_of(decision), {wrong.words}));
  }
}

TEST(Gate, IsInvalidWhereThePlanIsNotTheOneThatWasFixed) {
  const RunData data = gate_run();
  EXPECT_EQ(decide_gate(data, {}, 0, {.plan = gate_plan_hash({}, data.cells)}).outcome, GateOutcome::pass);
  GatePolicy other;
  other.decode_margin = 0.5;
  const GateDecision decision = decide_gate(data, other, 0, {.plan = gate_plan_hash({}, data.cells)});
  EXPECT_EQ(decision.exit_code, 4);
  EXPECT_TRUE(contains(problem_of(decision), {"fixed before the first block"}));
}

TEST(Gate, DoesNotCountTheGateBlockThatIsUnderWay) {
  RunData data = gate_run({.gate_blocks = 6});
  data.run.ended_unix_ns = 0;
  data.blocks.pop_back();  // the last cell of the last launch
  EXPECT_EQ(decide(data).outcome, GateOutcome::proceed);
  EXPECT_EQ(decide(data).gate_blocks, 5U);
  std::erase_if(data.blocks, [](const BlockRecord& block) { return block.launch == 11; });
  EXPECT_EQ(decide(data).gate_blocks, 5U);
}

TEST(Gate, LeavesVoidBlocksOutAndIsInvalidWhereTheyAreTooMany) {
  RunData data = gate_run({.gate_blocks = 6, .blocks = 2, .slow_down = 0});
  int left = 0;
  for (BlockRecord& block : data.blocks) {
    if (block.cell_id != data.cells[0].id || block.block != 0 || left == 6) {
      continue;
    }
    block.other_cpu_share = 0.5;
    for (VisitRecord& visit : block.visits) {
      if (visit.arm_id != kAfter) {
        continue;
      }
      for (std::int64_t& ns : visit.samples_ns) {
        ns *= 10;  // would fail the gate, were it not void
      }
    }
    ++left;
  }
  ASSERT_EQ(left, 6);
  const GateDecision few = decide(data);
  EXPECT_EQ(few.outcome, GateOutcome::pass) << problem_of(few);
  EXPECT_EQ(few.rows[0].void_blocks, 6);
  EXPECT_EQ(few.rows[0].blocks, 24);
  for (BlockRecord& block : data.blocks) {
    if (block.cell_id == data.cells[0].id && block.launch == 11) {
      block.other_cpu_share = 0.5;
    }
  }
  const GateDecision many = decide(data);
  EXPECT_EQ(many.exit_code, 4);
  EXPECT_TRUE(contains(problem_of(many), {"noise", "8 of 24", "25 %"}));
  GatePolicy lenient;
  lenient.void_share = 0.6;
  EXPECT_GT(decide_gate(data, lenient, 0).rows[0].look.estimate, 0.3) << "then the slow blocks count";
  EXPECT_EQ(decide_gate(data, lenient, 0).outcome, GateOutcome::proceed);
}

TEST(Gate, MeasuresWhatTheOrderOfLaunchesDoesAndIsNotMovedByIt) {
  const GateDecision decision = decide(gate_run({.noise = 0.002, .launch_order = 0.05}));
  EXPECT_EQ(decision.outcome, GateOutcome::pass);
  for (const GateRow& row : decision.rows) {
    EXPECT_NEAR(row.launch_order.estimate, 0.05, 0.004);
    EXPECT_GT(row.launch_order.interval->low, 0.04);
    EXPECT_NEAR(row.look.estimate, 0, 0.006);
  }
}

TEST(Gate, FailsOnlyWhatFreshBlocksBearOut) {
  const GateDecision waits = decide(gate_run({.gate_blocks = 11, .slow_down = 0.06}));
  EXPECT_EQ(waits.outcome, GateOutcome::proceed);
  EXPECT_EQ(waits.next_look, 12U);
  EXPECT_EQ(waits.looks_done, 0U) << "the look ends with its fresh blocks";
  EXPECT_EQ(waits.rows.front().fresh, std::nullopt);

  const GateDecision decision = decide(gate_run({.gate_blocks = 14, .slow_down = 0.06}));
  EXPECT_EQ(decision.outcome, GateOutcome::regression);
  EXPECT_EQ(decision.gate_blocks, 6U);
  ASSERT_TRUE(decision.rows.front().fresh.has_value());
  EXPECT_EQ(decision.rows.front().fresh->values, 6U);
  EXPECT_NEAR(std::expm1(decision.rows.front().fresh->estimate), 0.06, 0.01);
  EXPECT_NE(decision.rows.front().fresh->estimate, decision.rows.front().look.estimate);

  GatePolicy hasty;
  hasty.fresh_blocks = 0;
  EXPECT_EQ(decide_gate(gate_run({.gate_blocks = 6, .slow_down = 0.06}), hasty, 0).outcome, GateOutcome::regression);
}

/// Slower by 6 % in the first six gate blocks and equal from then on, as beside a load that went away.
RunData slower_at_first(std::int64_t gate_blocks) {
  RunData data = gate_run({.gate_blocks = gate_blocks});
  for (BlockRecord& block : data.blocks) {
    for (VisitRecord& visit : block.visits) {
      if (block.launch >= 12 || visit.arm_id != kAfter) {
        continue;
      }
      for (std::int64_t& ns : visit.samples_ns) {
        ns += 6 * ns / 100;
      }
    }
  }
  return data;
}

TEST(Gate, GoesOnWhereFreshBlocksDoNotBearASlowDownOut) {
  const RunData data = slower_at_first(12);
  const GateDecision refuted = decide(data);
  EXPECT_EQ(refuted.outcome, GateOutcome::proceed);
  EXPECT_EQ(refuted.next_look, 10U);
  EXPECT_EQ(refuted.looks_done, 1U);
  EXPECT_EQ(refuted.rows.front().look.verdict, LookVerdict::undecided);
  ASSERT_TRUE(refuted.rows.front().fresh.has_value());
  EXPECT_NEAR(std::expm1(refuted.rows.front().fresh->estimate), 0, 0.01);
  ASSERT_FALSE(refuted.notes.empty());
  EXPECT_TRUE(contains(refuted.notes.back(), {"at 6 gate blocks", "6 fresh ones", "did not bear out"}));
  EXPECT_NE(replay_gate(slower_at_first(24), {}).outcome, GateOutcome::regression);
  EXPECT_EQ(replay_gate(slower_at_first(11), {}).exit_code, 3)
      << "it ended while a slow-down was still to be borne out";
}

TEST(Gate, StopsWhereTheNextLookWouldEndAfterTheTimeBudget) {
  const RunData noisy = gate_run({.gate_blocks = 10, .noise = 0.15, .seed = 4});
  EXPECT_NEAR(decide(noisy).gate_block_s.value(), 120, 1e-9) << "two launches a minute apart";
  GatePolicy policy;
  policy.time_budget_s = 12 * 60;
  const GateDecision decision = decide_gate(noisy, policy, 0);
  EXPECT_EQ(decision.outcome, GateOutcome::inconclusive);
  EXPECT_TRUE(contains(problem_of(decision), {"10 gate blocks", "time budget is 12.0"}));
  ASSERT_FALSE(decision.notes.empty());
  EXPECT_TRUE(contains(decision.notes.back(),
                       {"one look alone", "\"looks\": [6]", "\"level\": 0.05", "\"family_level\": 0.05"}));
  policy.time_budget_s = 30 * 60;
  EXPECT_EQ(decide_gate(noisy, policy, 0).outcome, GateOutcome::proceed);
  policy.time_budget_s = 20 * 60;
  EXPECT_TRUE(contains(problem_of(decide_gate(gate_run({.gate_blocks = 6, .slow_down = 0.06}), policy, 0)),
                       {"the 6 fresh gate blocks that must bear out a slow-down", "time budget is 20.0"}));
}

TEST(Gate, ReplayDecidesAsTheGateDidAndLooksNoFurther) {
  // Slower from the seventh gate block on: a gate that stopped at its first look never saw it.
  RunData data = gate_run({.gate_blocks = 24});
  for (BlockRecord& block : data.blocks) {
    for (VisitRecord& visit : block.visits) {
      if (block.launch < 12 || visit.arm_id != kAfter) {
        continue;
      }
      for (std::int64_t& ns : visit.samples_ns) {
        ns *= 2;
      }
    }
  }
  EXPECT_EQ(replay_gate(data, {}).outcome, GateOutcome::pass);
  EXPECT_EQ(replay_gate(data, {}).gate_blocks, 6U);

  const RunData noisy = gate_run({.gate_blocks = 24, .noise = 0.15, .seed = 4});
  EXPECT_EQ(replay_gate(noisy, {}).looks_done, 4U);
  EXPECT_EQ(replay_gate(noisy, {}).exit_code, 3);
  for (const std::int64_t ended : {3, 8}) {
    const GateDecision cut = replay_gate(gate_run({.gate_blocks = ended, .noise = 0.15, .seed = 4}), {});
    EXPECT_EQ(cut.outcome, GateOutcome::inconclusive);
    EXPECT_EQ(cut.exit_code, 3);
    EXPECT_TRUE(
        contains(problem_of(cut), {"the run ended after " + std::to_string(ended), ended == 3 ? "at 6" : "at 10"}));
    EXPECT_EQ(cut.next_look, std::nullopt);
  }
}

TEST(Gate, WeighsTheCompositeAsThePolicySays) {
  RunData data = gate_run({.phases = {Phase::prefill, Phase::decode}, .lengths = {64, 128}, .noise = 0.001});
  const auto lone = data.cells.front();  // one prefill cell, two of decode
  std::erase_if(data.cells, [&](const CellRecord& cell) { return cell.phase == Phase::prefill && cell.id != lone.id; });
  const auto composite = [&](CompositeWeights weights) {
    GatePolicy policy;
    policy.composite_weights = weights;
    return decide_gate(data, policy, 0);
  };
  const auto& equal = composite(CompositeWeights::cell).rows;
  const auto& phases = composite(CompositeWeights::phase_then_batch).rows;
  ASSERT_EQ(equal.size(), 4U);
  EXPECT_NEAR(equal[3].look.estimate, (equal[0].look.estimate + equal[1].look.estimate + equal[2].look.estimate) / 3,
              1e-12);
  EXPECT_NEAR(phases[3].look.estimate,
              phases[0].look.estimate / 2 + (phases[1].look.estimate + phases[2].look.estimate) / 4, 1e-12);
}

TEST(Gate, SaysWhatMovedWhereBothSidesWereTraced) {
  RunData data = gate_run({.slow_down = 0.06});
  const std::size_t before = decide(data).notes.size();
  data.traces = {testing::sample_trace(1, 1), testing::sample_trace(1, 2, 1.2), testing::sample_trace(2, 2)};
  const GateDecision decision = decide(data);
  ASSERT_EQ(decision.notes.size(), before + 1) << "the second cell was traced on one side only";
  EXPECT_TRUE(contains(decision.notes.back(), {"decode batch 1 length 64", "before and after", "attention +800.0 us"}));
  EXPECT_EQ(decision.outcome, decide(gate_run({.slow_down = 0.06})).outcome) << "traces decide nothing";
}

}  // namespace
}  // namespace decodelab
