// A gate's decision for people, for CI systems and for programs. Text from outside cannot break out of any of them.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/gate.h"

namespace decodelab {

/// For a terminal: no line is wider than kTableWidth.
std::string gate_text(const GateDecision& decision);

/// GitHub-flavoured: the headline, at most kRowsByEvidence rows, the full table folded in <details>.
std::string gate_markdown(const GateDecision& decision);

/// JUnit XML: a test case for every cell's counters, outputs and time. What failed is a failure, what could not be
/// decided an error (skipped where the policy lets it pass).
std::string gate_junit(const GateDecision& decision);

/// Workflow commands of GitHub Actions, one a line: `::error`, `::warning` and `::notice`, at most 10 lines; empty for
/// a PASS without notes.
std::string gate_annotations(const GateDecision& decision);

/// One object: schema_version, decision, rows. Keys only ever get added.
std::string gate_json(const GateDecision& decision);

}  // namespace decodelab
