// Exact counters against a file of accepted ones: the half of a gate that noise cannot touch.
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
  improved,    ///< A cost fell: passes, and wants to be accepted.
};

struct CounterFinding {
  CounterOutcome outcome = CounterOutcome::invalid;
  CellRecord cell;
  std::string arm;
  std::string counter;
  std::int64_t accepted = 0;
  std::int64_t counted = 0;
  std::string words;  ///< One sentence without the row.
};

/// One JSON line for each row of the run that has counters: what identifies the row (device kind, libtorch, model,
/// dtype, threads, phase, scope, batch, length, arm) and `counters`. Sorted, so that a changed file shows what changed.
std::string counter_lines(const RunSummary& summary);

/// `accepted` with the rows of the run in the place of their old lines; other lines stay.
std::string accept_counters(std::string_view accepted, const RunSummary& summary);

/// Holds every row of the run against its accepted line.
///
/// Counters are costs, of which more is worse, but `lm_head_rows` and `counted_steps`, which prove what ran and must be
/// equal. Throws std::invalid_argument, with the line's number, for text that is not such lines.
std::vector<CounterFinding> check_counters(std::string_view accepted, const RunSummary& summary);

}  // namespace decodelab
