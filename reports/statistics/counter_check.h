// Compares exact counters with a file of accepted ones: the part of a gate that noise cannot affect.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/statistics/summary.h"

namespace decodelab {

/// What a finding means for the exit code, worst first.
enum class CounterOutcome {
  invalid,     ///< No accepted line for the row, or a counter that differed when it was counted again.
  regression,  ///< A cost rose, or a proof changed.
  improved,    ///< A cost fell: passes; the new count should be accepted.
};

struct CounterFinding {
  CounterOutcome outcome = CounterOutcome::invalid;
  CellRecord cell;
  std::string arm;
  std::string counter;
  std::int64_t accepted = 0;
  std::int64_t counted = 0;
  std::string words;  ///< What changed, without the name of the row.
};

/// Returns one JSON line for each row of the run that has counters: what identifies the row (device kind, libtorch,
/// model, dtype, threads, phase, scope, batch, length, arm) and `counters`. The lines are sorted, so that a diff of two
/// files shows what changed.
std::string counter_lines(const RunSummary& summary);

/// Returns `accepted` with a line for each counted row of the run, which replaces its old line; other lines stay.
std::string accept_counters(std::string_view accepted, const RunSummary& summary);

/// Compares every row of the run that has counters with its accepted line.
///
/// Counters are costs, of which more is worse; but of what was saved less is worse (`accepted_tokens`, `kept_masks`,
/// `prefix_tokens`, `prefix_pages`), and `lm_head_rows`, where nobody guesses, and `counted_steps` prove what ran and
/// must be equal. Throws std::invalid_argument, with the line's number, for text that counter_lines() did not write.
std::vector<CounterFinding> check_counters(std::string_view accepted, const RunSummary& summary);

}  // namespace decodelab
