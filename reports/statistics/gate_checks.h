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
  /// Content of the file of accepted counters; none: the candidate's counters are held against the baseline's.
  std::optional<std::string> accepted_counters;
  std::string accepted_arm;  ///< Label under which the candidate's counters were accepted; empty: its own.
  std::string plan;          ///< gate_plan_hash() of before the first block; empty: not checked.
};

/// One cell whose counters were held against others.
struct GateCounterCheck {
  CellRecord cell;
  bool accepted = false;  ///< Against a file of accepted ones; else against the baseline's.
  std::vector<CounterFinding> findings;
};

/// What has to be there before anything is decided; fills `arms`. `plan` is the hash of the plan as it is now.
std::vector<GateProblem> plan_problems(const RunData& data, const std::string& plan, const GateChecks& checks,
                                       GateArms& arms);

/// Every cell that may be timed, against the accepted counters, or, without a file, against the baseline's; then cells
/// that neither arm counted are left out. Needs a row for every cell and arm.
std::vector<GateCounterCheck> counter_checks(const RunData& data, const GateArms& arms, const GateChecks& checks);

/// None where nothing was found.
std::optional<CounterOutcome> worst_outcome(const std::vector<GateCounterCheck>& checks);

/// Rows that are incorrect, or else those that for another reason are no measurement.
std::vector<GateProblem> row_problems(const RunData& data, const GateArms& arms, bool incorrect);

}  // namespace decodelab
