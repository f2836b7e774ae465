// The gate's report for a terminal, and the table of what a gate finds.
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "reports/page/gate/gate_page.h"
#include "reports/page/gate/gate_words.h"

namespace decodelab {
namespace {

constexpr std::size_t kIndent = 2;

std::string item(const std::string& words) {
  std::string text = folded(words, kTableWidth - kIndent);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, kIndent, ' ');
  }
  return std::string(kIndent, ' ') + text + "\n";
}

// Returns at most kRowsByEvidence items, and how many were left out.
template <class Items, class Words>
std::string items_of(const Items& items, Words words) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& one : items) {
    if (shown++ == kRowsByEvidence) {
      return text + item(fmt::format("and {} more", items.size() - kRowsByEvidence));
    }
    text += item(words(one));
  }
  return text;
}

}  // namespace

std::string gate_text(const GateDecision& decision) {
  std::string text =
      folded(gate_headline(decision), kTableWidth) + "\n" + folded(gate_subject(decision), kTableWidth) + "\n";
  text += items_of(decision.problems, gate_problem_words);
  std::vector<CounterFinding> findings;
  for (const GateCounterCheck& check : decision.counters) {
    findings.insert(findings.end(), check.findings.begin(), check.findings.end());
  }
  text += items_of(findings, gate_finding_words);
  std::vector<const GateRow*> rows;
  for (const GateRow& row : decision.rows) {
    rows.push_back(&row);
  }
  for (const Table& table : gate_tables(rows)) {
    text += "\n" + to_text(table);
  }
  if (!rows.empty()) {
    text += "\n";
  }
  std::vector<const GateRow*> open = rows_by_evidence(decision);
  std::erase_if(open, [](const GateRow* row) { return row->look.verdict == LookVerdict::within; });
  text += items_of(open, [&](const GateRow* row) {
    return gate_row_label(*row, has_several_settings(decision)) + ": " + gate_row_words(*row, decision);
  });
  for (const std::string& note : gate_notes(decision)) {
    text += folded(note, kTableWidth) + "\n";
  }
  return text;
}

}  // namespace decodelab
