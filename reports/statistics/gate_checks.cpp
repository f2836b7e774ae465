// The checks of a gate that need no clock.
#include "reports/statistics/gate_checks.h"

#include <algorithm>

#include <fmt/format.h>

namespace decodelab {
namespace {

const CellArmRecord* find_row(const RunData& data, const CellRecord& cell, const ArmRecord& arm) {
  const auto found = std::ranges::find_if(
      data.cell_arms, [&](const CellArmRecord& row) { return row.cell_id == cell.id && row.arm_id == arm.id; });
  return found == data.cell_arms.end() ? nullptr : &*found;
}

SummaryRow counted_row(const RunData& data, const CellRecord& cell, const ArmRecord& arm, const std::string& label) {
  const CellArmRecord& fate = *find_row(data, cell, arm);
  SummaryRow row;
  row.cell = cell;
  row.arm = {arm.id, label, arm.baseline};
  row.model = data.run.model.name;
  row.flags = fate.flags;
  row.counters = fate.counters;
  return row;
}

CounterFinding not_counted(const CellRecord& cell, const ArmRecord& arm) {
  return {.outcome = CounterOutcome::invalid,
          .cell = cell,
          .arm = arm.label,
          .counter = "",
          .words = fmt::format("the counters of the {} were not counted", arm.baseline ? "baseline" : "candidate")};
}

std::string sentence_part(const CellArmRecord& row, const ArmRecord& arm) {
  const bool not_engaged = row.status == RowStatus::ok || row.status == RowStatus::planned;
  return fmt::format("the {} is {}{}{}", arm.baseline ? "baseline" : "candidate",
                     to_string(not_engaged ? RowStatus::not_engaged : row.status), row.reason.empty() ? "" : ": ",
                     row.reason);
}

}  // namespace

std::vector<GateProblem> plan_problems(const RunData& data, const std::string& plan, const GateChecks& checks,
                                       GateArms& arms) {
  std::vector<GateProblem> problems;
  const auto add = [&](std::string words) { problems.push_back({std::nullopt, std::move(words)}); };
  if (data.run.quick) {
    add("the run was made with --quick, whose rows are no evidence; run it without");
  }
  if (data.cells.empty()) {
    add("the run has no cell");
  }
  if (!checks.plan.empty() && checks.plan != plan) {
    add(fmt::format("policy or cells are not those that were fixed before the first block (plan {}, now {})",
                    checks.plan, plan));
  }
  if (const auto words = find_gate_arms(data, arms)) {
    add(*words);
    return problems;
  }
  for (const CellRecord& cell : data.cells) {
    for (const ArmRecord* arm : {arms.baseline, arms.candidate}) {
      if (find_row(data, cell, *arm) == nullptr) {
        problems.push_back({cell, fmt::format("the {} has no row", arm->baseline ? "baseline" : "candidate")});
      }
    }
  }
  return problems;
}

std::vector<GateCounterCheck> counter_checks(const RunData& data, const GateArms& arms, const GateChecks& checks) {
  std::vector<GateCounterCheck> results;
  const std::string label = checks.accepted_arm.empty() ? arms.candidate->label : checks.accepted_arm;
  for (const CellRecord& cell : data.cells) {
    const CellArmRecord& fate = *find_row(data, cell, *arms.candidate);
    if (!comparable(fate.status, fate.engaged)) {
      continue;
    }
    GateCounterCheck check{.cell = cell, .accepted = checks.accepted_counters.has_value(), .findings = {}};
    RunSummary candidate{.run = data.run, .arms = {}, .rows = {counted_row(data, cell, *arms.candidate, label)}};
    RunSummary baseline{.run = data.run, .arms = {}, .rows = {counted_row(data, cell, *arms.baseline, label)}};
    SummaryRow& row = candidate.rows.front();
    const SummaryRow& other = baseline.rows.front();
    if (row.counters.empty() && (check.accepted || !other.counters.empty())) {
      check.findings.push_back(not_counted(cell, *arms.candidate));
    } else if (check.accepted) {
      check.findings = check_counters(*checks.accepted_counters, candidate);
    } else if (row.counters.empty()) {
      continue;
    } else if (other.counters.empty()) {
      check.findings.push_back(not_counted(cell, *arms.baseline));
    } else {
      for (const std::string& flag : other.flags) {
        if (std::ranges::find(row.flags, flag) == row.flags.end()) {
          row.flags.push_back(flag);
        }
      }
      check.findings = check_counters(counter_lines(baseline), candidate);
    }
    results.push_back(std::move(check));
  }
  return results;
}

std::optional<CounterOutcome> worst_outcome(const std::vector<GateCounterCheck>& checks) {
  std::optional<CounterOutcome> worst;
  for (const GateCounterCheck& check : checks) {
    for (const CounterFinding& finding : check.findings) {
      worst = std::min(worst.value_or(finding.outcome), finding.outcome);
    }
  }
  return worst;
}

std::vector<GateProblem> row_problems(const RunData& data, const GateArms& arms, bool incorrect) {
  std::vector<GateProblem> problems;
  for (const CellRecord& cell : data.cells) {
    for (const ArmRecord* arm : {arms.baseline, arms.candidate}) {
      const CellArmRecord& row = *find_row(data, cell, *arm);
      if (!comparable(row.status, row.engaged) && (row.status == RowStatus::incorrect) == incorrect) {
        problems.push_back({cell, sentence_part(row, *arm)});
      }
    }
  }
  return problems;
}

}  // namespace decodelab
