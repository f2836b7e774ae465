// A gate's decision for people, for CI systems and for programs. Text from outside cannot break out of any of them.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/gate.h"

namespace decodelab {

/// Returns the report for a terminal: no line is wider than kTableWidth.
std::string gate_text(const GateDecision& decision);

/// Returns GitHub-flavoured Markdown: the headline, at most kRowsByEvidence rows, the full table folded in <details>.
std::string gate_markdown(const GateDecision& decision);

/// Returns JUnit XML with a test case for the counters, the outputs and the time of every cell. A check that failed is
/// a `failure`. One that could not be decided is an `error`, or `skipped` where the policy lets it pass.
std::string gate_junit(const GateDecision& decision);

/// Returns workflow commands of GitHub Actions, one per line: `::error`, `::warning` and `::notice`, at most 10 lines;
/// empty for a PASS without notes.
std::string gate_annotations(const GateDecision& decision);

/// Returns one JSON object: schema_version, decision, rows. Later versions only add keys.
std::string gate_json(const GateDecision& decision);

}  // namespace decodelab
