// What a gate checks without a clock: the plan, exact counters, and whether the rows are measurements at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/statistics/counter_check.h"
#include "reports/statistics/gate_blocks.h"
#include "reports/store/record.h"

namespace decodelab {

/// What is checked beside the times.
struct GateChecks {
  /// Content of the file of accepted counters. Without one, the candidate's counters are compared with the baseline's.
  std::optional<std::string> accepted_counters;
  std::string accepted_arm;  ///< Label under which the candidate's counters were accepted; empty: its own.
  std::string plan;          ///< gate_plan_hash() from before the first block; empty: not checked.
};

/// One cell whose counters were compared with others.
struct GateCounterCheck {
  CellRecord cell;
  bool accepted = false;  ///< Compared with a file of accepted ones; else with the baseline's.
  std::vector<CounterFinding> findings;
};

/// Returns what prevents any decision (a --quick run, no cell, a changed plan, missing arms or rows) and fills `arms`.
/// `plan` is the hash of the plan as it is now.
std::vector<GateProblem> plan_problems(const RunData& data, const std::string& plan, const GateChecks& checks,
                                       GateArms& arms);

/// Compares the counters of every cell that may be timed with the accepted ones or, without a file of them, with the
/// baseline's; in the second case cells that neither arm counted are left out. Needs a row for every cell and arm.
std::vector<GateCounterCheck> counter_checks(const RunData& data, const GateArms& arms, const GateChecks& checks);

/// Returns the worst outcome of all findings; none where there is no finding.
std::optional<CounterOutcome> worst_outcome(const std::vector<GateCounterCheck>& checks);

/// Returns the rows that are incorrect, or, where `incorrect` is false, those that are no measurement for another
/// reason.
std::vector<GateProblem> row_problems(const RunData& data, const GateArms& arms, bool incorrect);

}  // namespace decodelab
