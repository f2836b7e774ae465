// The gate's report as GitHub-flavoured Markdown, for a job summary or a comment.
#include <fmt/format.h>

#include "base/escape.h"
#include "base/text.h"
#include "reports/page/gate/gate_page.h"
#include "reports/page/gate/gate_words.h"

namespace decodelab {
namespace {

std::string list_item(const std::string& words) { return fmt::format("- {}\n", escape_markdown(one_line(words))); }

std::string tables_of(const std::vector<const GateRow*>& rows) {
  std::string text;
  for (const Table& table : gate_tables(rows)) {
    text += to_markdown(table);
  }
  return text;
}

std::string findings_of(const GateDecision& decision) {
  std::string text;
  std::size_t left_out = 0;
  std::size_t shown = 0;
  const auto add = [&](const std::string& words) {
    shown < kRowsByEvidence ? text += list_item(words) : text;
    left_out += shown++ >= kRowsByEvidence;
  };
  for (const GateProblem& problem : decision.problems) {
    add(gate_problem_words(problem));
  }
  for (const GateCounterCheck& check : decision.counters) {
    for (const CounterFinding& finding : check.findings) {
      add(gate_finding_words(finding));
    }
  }
  if (left_out > 0) {
    text += list_item(fmt::format("and {} more", left_out));
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string gate_markdown(const GateDecision& decision) {
  // The words in a headline were cut already, and it may name several of them: hence twice the length.
  std::string text =
      fmt::format("## {}\n\n{}\n\n", escape_markdown(one_line(gate_headline(decision), 2 * kOutsideText)),
                  escape_markdown(gate_subject(decision)));
  text += findings_of(decision);
  std::vector<const GateRow*> rows = rows_by_evidence(decision);
  const std::size_t all = rows.size();
  if (all > kRowsByEvidence) {
    rows.resize(kRowsByEvidence);
  }
  text += tables_of(rows);
  if (all > kRowsByEvidence) {
    std::vector<const GateRow*> every;
    for (const GateRow& row : decision.rows) {
      every.push_back(&row);
    }
    text += fmt::format("<details><summary>All {} rows</summary>\n\n{}</details>\n\n", all, tables_of(every));
  }
  for (const std::string& note : gate_notes(decision)) {
    text += list_item(note);
  }
  return text;
}

}  // namespace decodelab
