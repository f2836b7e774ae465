// Walks through what a gate checks, worst first, and stops at the first that decides.
#include "reports/statistics/gate.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/statistics/family.h"
#include "reports/statistics/stage_moves.h"

namespace decodelab {
namespace {

constexpr double kLevel95 = 0.025;  // beyond each end
constexpr double kLevelOfOneLook = 0.05;

int exit_code_of(GateOutcome outcome, OnInconclusive on_inconclusive) {
  switch (outcome) {
    case GateOutcome::proceed:
    case GateOutcome::pass: return 0;
    case GateOutcome::regression: return 1;
    case GateOutcome::inconclusive:
      return on_inconclusive == OnInconclusive::report ? 3 : on_inconclusive == OnInconclusive::pass ? 0 : 1;
    case GateOutcome::invalid: return 4;
    case GateOutcome::outputs_differ: return 5;
  }
  return 4;
}

GateEstimate estimate_of(const std::vector<double>& values, double level = kLevel95) {
  const std::vector<double> whole = without_gaps(values);
  if (whole.empty()) {
    return {};
  }
  return {whole.size(), mean(whole), mean_interval(whole, level)};
}

std::vector<double> weighted(const std::vector<GateCell>& cells, CompositeWeights scheme,
                             std::vector<double> GateCell::* member) {
  std::vector<const CellRecord*> records;
  std::vector<std::span<const double>> values;
  for (const GateCell& cell : cells) {
    records.push_back(&cell.cell);
    values.emplace_back(cell.*member);
  }
  std::vector<double> weights = composite_weights(records);
  if (scheme == CompositeWeights::cell) {
    weights.assign(cells.size(), 1 / static_cast<double>(cells.size()));
  }
  return weighted_sum(weights, values);
}

// The cells, and after them the composite where there is more than one.
struct Family {
  std::vector<GateRow> rows;
  std::vector<std::vector<double>> contrasts;
};

Family family_of(const std::vector<GateCell>& cells, const GatePolicy& policy) {
  Family family;
  for (const GateCell& cell : cells) {
    family.contrasts.push_back(cell.values);
    family.rows.push_back({.cell = cell.cell,
                           .margin = policy.margin_of(cell.cell),
                           .look = {},
                           .launch_order = estimate_of(cell.launch_order),
                           .fresh = std::nullopt,
                           .blocks = cell.blocks,
                           .void_blocks = cell.void_blocks});
  }
  if (cells.size() < 2) {
    return family;
  }
  family.contrasts.push_back(weighted(cells, policy.composite_weights, &GateCell::values));
  family.rows.push_back(
      {.cell = std::nullopt,
       .margin = policy.composite_margin,
       .look = {},
       .launch_order = estimate_of(weighted(cells, policy.composite_weights, &GateCell::launch_order)),
       .fresh = std::nullopt});
  return family;
}

std::vector<GateProblem> noise_problems(const std::vector<GateRow>& rows, double most_void) {
  std::vector<GateProblem> problems;
  for (const GateRow& row : rows) {
    if (static_cast<double>(row.void_blocks) <= most_void * static_cast<double>(row.blocks)) {
      continue;
    }
    problems.push_back({row.cell, fmt::format("noise: other processes disturbed {} of {} blocks, and {:.0f} % may be",
                                              row.void_blocks, row.blocks, 100 * most_void)});
  }
  return problems;
}

LookMargin margin_of(const GateRow& row) { return {std::log1p(row.margin), std::log1p(row.margin)}; }

// Tests the rows that this look called slower in the gate blocks after it.
SecondLook look_behind(GateDecision& decision, const RunData& data, const GateArms& arms,
                       const std::vector<std::int64_t>& all) {
  const GatePolicy& policy = decision.policy;
  if (policy.fresh_blocks == 0) {
    return {Evidence::borne_out, 0};
  }
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(decision.gate_blocks);
  const std::size_t fresh = std::min(all.size() - decision.gate_blocks, policy.fresh_blocks);
  const std::vector<std::int64_t> blocks(first, first + static_cast<std::ptrdiff_t>(fresh));
  Family behind = family_of(gate_cells(data, arms, blocks, policy.void_share), policy);
  std::vector<std::vector<double>> suspects;
  std::vector<LookMargin> margins;
  for (std::size_t j = 0; j < decision.rows.size(); ++j) {
    if (decision.rows[j].look.verdict != LookVerdict::slower) {
      continue;
    }
    suspects.push_back(behind.contrasts[j]);
    margins.push_back(margin_of(decision.rows[j]));
  }
  const SecondLook second = second_look(suspects, margins, policy.looks, policy.fresh_blocks);
  if (second.evidence == Evidence::awaited) {
    return second;
  }
  for (std::size_t j = 0; j < decision.rows.size(); ++j) {
    behind.contrasts[j].resize(second.values);
    decision.rows[j].fresh = estimate_of(behind.contrasts[j], policy.looks.level);
  }
  return second;
}

// Asks for `next` gate blocks in all, for `purpose`, where the time budget allows them; else stops as inconclusive.
void go_on_or_stop(GateDecision& decision, const RunData& data, const std::vector<std::int64_t>& used, std::size_t next,
                   const std::string& purpose) {
  const double block_s = decision.gate_block_s.value_or(0);
  const double end_s = gate_elapsed_seconds(data, used) + block_s * static_cast<double>(next - decision.gate_blocks);
  if (decision.policy.time_budget_s && end_s > *decision.policy.time_budget_s) {
    decision.outcome = GateOutcome::inconclusive;
    decision.problems.push_back(
        {std::nullopt, fmt::format("{} would end after {:.1f} minutes, and the time budget is {:.1f}", purpose,
                                   end_s / kSecondsOfAMinute, *decision.policy.time_budget_s / kSecondsOfAMinute)});
    return;
  }
  decision.next_look = next;
}

void go_on_to_next_look(GateDecision& decision, const RunData& data, const std::vector<std::int64_t>& used) {
  const std::vector<std::size_t>& looks = decision.policy.looks.looks;
  if (decision.looks_done == looks.size()) {
    decision.outcome = GateOutcome::inconclusive;
    decision.problems.push_back(
        {std::nullopt, fmt::format("the last look, at {} gate blocks, left it undecided", looks.back())});
    return;
  }
  const std::size_t next = looks[decision.looks_done];
  go_on_or_stop(decision, data, used, next, fmt::format("the look at {} gate blocks", next));
  if (decision.next_look || decision.looks_done > 1) {
    return;
  }
  decision.notes.push_back(fmt::format(
      R"(Time for one look alone: a policy with "looks": [{}], "level": {}, "family_level": {} spends on it what is kept for {}.)",
      looks.front(), kLevelOfOneLook, kLevelOfOneLook, looks.size()));
}

// Fails the gate only where gate blocks that the look had not seen confirm the slow-down that it saw.
void fail_or_go_on(GateDecision& decision, const RunData& data, const GateArms& arms,
                   const std::vector<std::int64_t>& used, const std::vector<std::int64_t>& all) {
  const auto [evidence, fresh] = look_behind(decision, data, arms, all);
  if (evidence == Evidence::borne_out) {
    decision.outcome = GateOutcome::regression;
    return;
  }
  if (evidence == Evidence::awaited) {
    --decision.looks_done;  // the look ends with its fresh gate blocks
    go_on_or_stop(decision, data, used, decision.gate_blocks + fresh,
                  fmt::format("the {} fresh gate blocks that must bear out a slow-down", fresh));
    return;
  }
  decision.notes.push_back(fmt::format(
      "The look at {} gate blocks saw a slow-down that the {} fresh ones behind it did not bear out: undecided.",
      decision.gate_blocks, fresh));
  for (GateRow& row : decision.rows) {
    if (row.look.verdict == LookVerdict::slower) {
      row.look.verdict = LookVerdict::undecided;
    }
  }
  go_on_to_next_look(decision, data, used);
}

void decide_by_time(GateDecision& decision, const RunData& data, const GateArms& arms, std::size_t look) {
  decision.stage = GateStage::time;
  const GatePolicy& policy = decision.policy;
  const std::size_t needed = policy.looks.looks[look];
  const std::vector<std::int64_t> all = gate_blocks_of(data);
  decision.looks_done = look;
  if (all.size() < needed) {
    decision.gate_blocks = all.size();
    decision.gate_block_s = gate_block_seconds(data, all);
    decision.next_look = needed;
    return;
  }
  const std::vector<std::int64_t> used(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(needed));
  decision.looks_done = look + 1;
  decision.gate_blocks = needed;
  decision.gate_block_s = gate_block_seconds(data, used);
  decision.problems = missing_times(data, arms, used, policy.void_share);
  if (!decision.problems.empty()) {
    decision.outcome = GateOutcome::invalid;
    return;
  }
  Family family = family_of(gate_cells(data, arms, used, policy.void_share), policy);
  std::vector<LookMargin> margins;
  for (const GateRow& row : family.rows) {
    margins.push_back(margin_of(row));
  }
  const std::vector<LookContrast> decided = decide_look(family.contrasts, margins, policy.looks);
  for (std::size_t j = 0; j < decided.size(); ++j) {
    family.rows[j].look = decided[j];
  }
  decision.rows = std::move(family.rows);
  decision.problems = noise_problems(decision.rows, policy.most_void);
  const auto has = [](LookVerdict verdict) {
    return [verdict](const GateRow& row) { return row.look.verdict == verdict; };
  };
  if (!decision.problems.empty()) {
    decision.outcome = GateOutcome::invalid;
  } else if (std::ranges::any_of(decision.rows, has(LookVerdict::slower))) {
    fail_or_go_on(decision, data, arms, used, all);
  } else if (std::ranges::all_of(decision.rows, has(LookVerdict::within))) {
    decision.outcome = GateOutcome::pass;
  } else {
    go_on_to_next_look(decision, data, used);
  }
}

void decide(GateDecision& decision, const RunData& data, const GateChecks& checks, std::size_t look) {
  GateArms arms;
  decision.problems = plan_problems(data, decision.plan, checks, arms);
  if (arms.baseline != nullptr) {
    decision.baseline = arms.baseline->label;
  }
  if (arms.candidate != nullptr) {
    decision.candidate = arms.candidate->label;
  }
  if (!decision.problems.empty()) {
    decision.outcome = GateOutcome::invalid;
    return;
  }
  decision.stage = GateStage::counters;
  decision.counters = counter_checks(data, arms, checks);
  const auto worst = worst_outcome(decision.counters);
  if (worst == CounterOutcome::improved && checks.accepted_counters) {
    decision.notes.emplace_back(
        "A cost fell; `decodelab counters RUN --file FILE --accept` makes that what is expected.");
  }
  if (worst && worst != CounterOutcome::improved) {
    decision.outcome = worst == CounterOutcome::invalid ? GateOutcome::invalid : GateOutcome::regression;
    return;
  }
  decision.stage = GateStage::outputs;
  decision.problems = row_problems(data, arms, true);
  if (!decision.problems.empty()) {
    decision.outcome = GateOutcome::outputs_differ;
    return;
  }
  decision.stage = GateStage::time;
  decision.problems = row_problems(data, arms, false);
  if (!decision.problems.empty()) {
    decision.outcome = GateOutcome::invalid;
    return;
  }
  decide_by_time(decision, data, arms, look);
}

// Adds notes on where the traces say that a difference lies, for the cells that were traced on both sides; no part of
// the decision.
void add_moves(GateDecision& decision, const RunData& data) {
  constexpr std::size_t kMostSentences = 3;
  const auto baseline = std::ranges::find(data.arms, decision.baseline, &ArmRecord::label);
  const auto candidate = std::ranges::find(data.arms, decision.candidate, &ArmRecord::label);
  if (baseline == data.arms.end() || candidate == data.arms.end()) {
    return;
  }
  std::size_t told = 0;
  for (const CellRecord& cell : data.cells) {
    const auto moves = stage_moves({&data, &cell, &*baseline}, {&data, &cell, &*candidate});
    if (!moves || told++ >= kMostSentences) {
      continue;
    }
    decision.notes.push_back(fmt::format("{} batch {} length {}: {}", to_string(cell.phase), cell.batch, cell.length,
                                         stage_moves_sentence(*moves)));
  }
  if (told > kMostSentences) {
    decision.notes.push_back(fmt::format("{} more cells have traces on both sides.", told - kMostSentences));
  }
}

}  // namespace

const char* to_string(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::proceed: return "CONTINUE";
    case GateOutcome::pass: return "PASS";
    case GateOutcome::regression: return "FAIL";
    case GateOutcome::inconclusive: return "INCONCLUSIVE";
    case GateOutcome::invalid: return "INVALID";
    case GateOutcome::outputs_differ: return "OUTPUTS DIFFER";
  }
  return "";
}

const char* to_string(GateStage stage) {
  switch (stage) {
    case GateStage::plan: return "plan";
    case GateStage::counters: return "counters";
    case GateStage::outputs: return "outputs";
    case GateStage::time: return "time";
  }
  return "";
}

GateDecision decide_gate(const RunData& data, const GatePolicy& policy, std::size_t looks_done,
                         const GateChecks& checks) {
  if (looks_done >= policy.looks.looks.size()) {
    throw std::invalid_argument(
        fmt::format("The policy has {} looks, and {} are done.", policy.looks.looks.size(), looks_done));
  }
  GateDecision decision;
  decision.policy = policy;
  decision.run = data.run;
  decision.plan = gate_plan_hash(policy, data.cells);
  decision.looks_done = looks_done;
  if (std::string caution = looks_caution(policy); !caution.empty()) {
    decision.notes.push_back(std::move(caution));
  }
  decide(decision, data, checks, looks_done);
  add_moves(decision, data);
  decision.exit_code = exit_code_of(decision.outcome, policy.on_inconclusive);
  return decision;
}

GateDecision replay_gate(const RunData& data, const GatePolicy& policy, const GateChecks& checks) {
  GateDecision decision = decide_gate(data, policy, 0, checks);
  std::size_t looks_done = 0;
  // A call that found too few gate blocks takes no look, and `looks_done` stays.
  while (decision.outcome == GateOutcome::proceed && decision.looks_done > looks_done) {
    looks_done = decision.looks_done;
    GateDecision next = decide_gate(data, policy, looks_done, checks);
    if (next.looks_done == looks_done) {
      break;  // the rows of the last look stay
    }
    decision = std::move(next);
  }
  if (decision.outcome != GateOutcome::proceed) {
    return decision;
  }
  decision.outcome = GateOutcome::inconclusive;
  decision.problems.push_back(
      {std::nullopt, fmt::format("the run ended after {} gate blocks, and the next look is at {}",
                                 gate_blocks_of(data).size(), *decision.next_look)});
  decision.next_look.reset();
  decision.exit_code = exit_code_of(decision.outcome, policy.on_inconclusive);
  return decision;
}

}  // namespace decodelab
