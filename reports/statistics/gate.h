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
                   ///< bear it out.
  inconclusive,    ///< Neither, and no look or time is left.
  invalid,         ///< Noise, or something is missing: no decision can be had from this run.
  outputs_differ,  ///< An arm was found incorrect.
};
const char* to_string(
    GateOutcome outcome);  ///< "CONTINUE", "PASS", "FAIL", "INCONCLUSIVE", "INVALID", "OUTPUTS DIFFER".

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
  GateEstimate launch_order;  ///< 95 %. What it adds to have the candidate's process started first.
  /// From the gate blocks behind a look that called something slower, which must bear it out: kIntervalWithLooks.
  std::optional<GateEstimate> fresh;
  std::int64_t blocks = 0;  ///< Of the cell, void ones included; 0 for the composite.
  std::int64_t void_blocks = 0;
};

struct GateDecision {
  GateOutcome outcome = GateOutcome::proceed;
  GateStage stage = GateStage::plan;
  int exit_code = 0;                  ///< 0 also where the gate goes on.
  std::vector<GateProblem> problems;  ///< Why it is invalid or the outputs differ; else why it stopped.
  std::vector<std::string> notes;     ///< Sentences that a reader should know whatever the outcome.
  std::vector<GateCounterCheck> counters;
  std::vector<GateRow> rows;             ///< In the order of cells, then the composite; empty before the first look.
  std::size_t looks_done = 0;            ///< With this one, if there were blocks enough for it.
  std::size_t gate_blocks = 0;           ///< That this decision rests on.
  std::optional<std::size_t> next_look;  ///< Gate blocks in all that the next look needs, or this one's fresh ones.
  std::optional<double> gate_block_s;    ///< How long one takes.
  std::string plan;                      ///< gate_plan_hash().
  GatePolicy policy;
  RunRecord run;
  std::string baseline;
  std::string candidate;
};

/// Decides after `looks_done` looks that decided nothing, from the first gate blocks that the next look asks for and no
/// others, so that a replay of the finished run decides the same. Call it with 0 before the first block too: counters
/// and outputs decide without times. Throws std::invalid_argument for accepted counters that are none.
GateDecision decide_gate(const RunData& data, const GatePolicy& policy, std::size_t looks_done,
                         const GateChecks& checks = {});

/// Takes look after look as the gate did while it ran; a run that ended before its next look is inconclusive.
GateDecision replay_gate(const RunData& data, const GatePolicy& policy, const GateChecks& checks = {});

}  // namespace decodelab
