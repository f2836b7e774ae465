// Puts a gate's decision into the words that its text, Markdown, JUnit, annotations and JSON share.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/gate.h"

namespace decodelab {

/// Rows that a summary shows before it folds the rest.
inline constexpr std::size_t kRowsByEvidence = 10;

/// "FAIL: b1 tg @ d64 is slower (p = 0.0156, best estimate +4.2 %)."
std::string gate_headline(const GateDecision& decision);

/// "after against before, run nightly (run 3), plan 0123456789abcdef"
std::string gate_subject(const GateDecision& decision);

/// Returns `b1 tg @ d64`, or `composite`. Adds the setting of the cell where `settings` is true, that is, where the
/// cells of a decision differ in it.
std::string gate_row_label(const GateRow& row, bool settings = false);
bool has_several_settings(const GateDecision& decision);

/// Returns the result of the row without its label: "slower (p = 0.0156, best estimate +4.2 %)".
std::string gate_row_words(const GateRow& row, const GateDecision& decision);

/// Returns "b1 tg @ d64: op.aten::cat rose from 4 to 5", or the problem's words alone where it is about no cell.
std::string gate_problem_words(const GateProblem& problem);
std::string gate_finding_words(const CounterFinding& finding);

/// Sorts rows by evidence: slower rows first, by p, then undecided ones by how far their interval exceeds the margin,
/// then all others.
std::vector<const GateRow*> rows_by_evidence(const GateDecision& decision);

/// Returns a table of the rows for each setting (dtype, device, threads, scope); no wider than kTableWidth.
std::vector<Table> gate_tables(const std::vector<const GateRow*>& rows);

/// Returns the sentences under the tables: how to read them, launch order, void blocks, fresh estimates, notes of the
/// decision.
std::vector<std::string> gate_notes(const GateDecision& decision);

/// Returns the effect of a log ratio as per cent with its sign: `+1.23 %`.
std::string format_effect(double log_ratio);
/// `0.0156`, or `< 0.0001`.
std::string format_p(double p);

}  // namespace decodelab
