// The gate's decision: counters, then outputs, then time, from stored data alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/statistics/gate_blocks.h"
#include "reports/statistics/gate_checks.h"
#include "reports/statistics/gate_policy.h"
#include "reports/statistics/looks.h"
#include "reports/store/record.h"

namespace decodelab {

enum class GateOutcome {
  proceed,         ///< Not decided: `next_look` gate blocks are needed.
  pass,            ///< Nothing rose, and every cell and the composite are slower by less than their margins.
  regression,      ///< A counter rose or changed, or a time is significantly slower by its margin and fresh gate blocks
                   ///< confirm it.
  inconclusive,    ///< Neither pass nor regression, and no look or time is left.
  invalid,         ///< Too much noise, or something is missing: this run allows no decision.
  outputs_differ,  ///< An arm was found incorrect.
};
/// Returns "CONTINUE", "PASS", "FAIL", "INCONCLUSIVE", "INVALID" or "OUTPUTS DIFFER".
const char* to_string(GateOutcome outcome);

/// What the outcome was decided by.
enum class GateStage { plan, counters, outputs, time };
const char* to_string(GateStage stage);

/// Mean and t interval of logarithms.
struct GateEstimate {
  std::size_t values = 0;
  double estimate = 0;
  std::optional<Interval> interval;
};

/// One cell, or the composite of all.
struct GateRow {
  std::optional<CellRecord> cell;  ///< None: the composite.
  double margin = 0;               ///< As a share.
  LookContrast look;
  GateEstimate launch_order;  ///< What starting the candidate's process first adds to the log ratio; 95 % interval.
  /// Estimate from the fresh gate blocks after a look that called something slower; they must confirm it. The interval
  /// is that of kIntervalWithLooks.
  std::optional<GateEstimate> fresh;
  std::int64_t blocks = 0;  ///< Blocks of the cell, void ones included; 0 for the composite.
  std::int64_t void_blocks = 0;
};

struct GateDecision {
  GateOutcome outcome = GateOutcome::proceed;
  GateStage stage = GateStage::plan;
  int exit_code = 0;                  ///< 0 also where the gate continues.
  std::vector<GateProblem> problems;  ///< Why it is invalid or the outputs differ; else why it stopped.
  std::vector<std::string> notes;     ///< Sentences that a reader should know whatever the outcome.
  std::vector<GateCounterCheck> counters;
  std::vector<GateRow> rows;    ///< In the order of cells, then the composite; empty before the first look.
  std::size_t looks_done = 0;   ///< Looks taken, this one included if there were enough blocks for it.
  std::size_t gate_blocks = 0;  ///< Number of gate blocks that this decision rests on.
  /// Gate blocks in all that the next look needs, or that this one needs with its fresh ones.
  std::optional<std::size_t> next_look;
  std::optional<double> gate_block_s;  ///< Seconds that a gate block takes.
  std::string plan;                    ///< gate_plan_hash().
  GatePolicy policy;
  RunRecord run;
  std::string baseline;
  std::string candidate;
};

/// Takes the next look, after `looks_done` looks that decided nothing. It uses only the first gate blocks that this
/// look asks for, and the fresh ones after them where it calls something slower, so that a replay of the finished run
/// decides the same. Call it with 0 before the first block too: counters and outputs decide without times. Throws
/// std::invalid_argument where the policy has no further look, and for accepted counters that counter_lines() did not
/// write.
GateDecision decide_gate(const RunData& data, const GatePolicy& policy, std::size_t looks_done,
                         const GateChecks& checks = {});

/// Takes all looks in turn, as the gate did while it ran; a run that ended before its next look is inconclusive.
GateDecision replay_gate(const RunData& data, const GatePolicy& policy, const GateChecks& checks = {});

}  // namespace decodelab
