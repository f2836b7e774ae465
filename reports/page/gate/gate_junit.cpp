// The gate as JUnit XML, which CI systems show as tests.
#include <algorithm>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/text.h"
#include "reports/page/gate/gate_page.h"
#include "reports/page/gate/gate_words.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

// What a test case says: nothing where it passed.
struct Case {
  GateStage stage = GateStage::time;
  std::string name;
  const char* element = "";  // failure, error or skipped
  std::string type;
  std::string message;
};

// What one_line() leaves may stand in any text or attribute of XML 1.0, once escaped.
std::string xml(std::string_view text) { return escape_html(one_line(text, 2 * kOutsideText)); }

const char* element_of_undecided(const GateDecision& decision) {
  if (decision.outcome == GateOutcome::proceed) {
    return "skipped";
  }
  switch (decision.policy.on_inconclusive) {
    case OnInconclusive::report: return "error";
    case OnInconclusive::pass: return "skipped";
    case OnInconclusive::fail: return "failure";
  }
  return "error";
}

Case case_of(const GateCounterCheck& check) {
  Case result{.stage = GateStage::counters, .name = cell_label(check.cell), .element = "", .type = "", .message = ""};
  std::string words;
  for (const CounterFinding& finding : check.findings) {
    if (finding.outcome == CounterOutcome::improved) {
      continue;
    }
    const bool invalid = finding.outcome == CounterOutcome::invalid;
    if (words.empty()) {
      result.element = invalid ? "error" : "failure";
      result.type = invalid ? "invalid" : "regression";
    }
    words += (words.empty() ? "" : "; ") + one_line(finding.words);
  }
  result.message = words;
  return result;
}

Case case_of(const GateRow& row, const GateDecision& decision) {
  Case result{.stage = GateStage::time,
              .name = gate_row_label(row, has_several_settings(decision)),
              .element = "",
              .type = "",
              .message = ""};
  if (row.look.verdict == LookVerdict::slower) {
    result.element = "failure";
    result.type = "regression";
  } else if (row.look.verdict == LookVerdict::undecided) {
    result.element = element_of_undecided(decision);
    result.type = "inconclusive";
  }
  if (*result.element != '\0') {
    result.message = gate_row_words(row, decision);
  }
  return result;
}

std::vector<Case> cases_of(const GateDecision& decision) {
  std::vector<Case> cases;
  for (const GateCounterCheck& check : decision.counters) {
    cases.push_back(case_of(check));
  }
  for (const GateRow& row : decision.rows) {
    cases.push_back(case_of(row, decision));
  }
  const bool differ = decision.outcome == GateOutcome::outputs_differ;
  if (differ || decision.outcome == GateOutcome::invalid) {
    for (const GateProblem& problem : decision.problems) {
      cases.push_back({.stage = decision.stage,
                       .name = problem.cell ? cell_label(*problem.cell) + " is valid" : "the run is valid",
                       .element = differ ? "failure" : "error",
                       .type = differ ? "outputs-differ" : "invalid",
                       .message = gate_problem_words(problem)});
    }
  }
  // Where no row was decided, a suite without a test would look like one that passed.
  if (cases.empty() || (decision.rows.empty() && decision.outcome == GateOutcome::inconclusive)) {
    cases.push_back({.stage = decision.stage,
                     .name = "the gate decides",
                     .element = element_of_undecided(decision),
                     .type = "inconclusive",
                     .message = gate_headline(decision)});
  }
  return cases;
}

}  // namespace

std::string gate_junit(const GateDecision& decision) {
  const std::vector<Case> cases = cases_of(decision);
  const auto count = [&](std::string_view element) {
    return std::ranges::count_if(cases, [&](const Case& one) { return element == one.element; });
  };
  const double seconds = decision.gate_block_s.value_or(0) * static_cast<double>(decision.gate_blocks);
  const std::string counts = fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")",
                                         cases.size(), count("failure"), count("error"), count("skipped"), seconds);
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n<testsuite name=\"decodelab gate\" "
      "{}>\n<properties>\n"
      "<property name=\"decision\" value=\"{}\"/>\n<property name=\"subject\" value=\"{}\"/>\n</properties>\n",
      counts, counts, xml(gate_headline(decision)), xml(gate_subject(decision)));
  for (const Case& one : cases) {
    text += fmt::format("<testcase classname=\"decodelab.gate.{}\" name=\"{}\" time=\"0\"", to_string(one.stage),
                        xml(one.name));
    if (*one.element == '\0') {
      text += "/>\n";
    } else {
      text +=
          fmt::format("><{} type=\"{}\" message=\"{}\"/></testcase>\n", one.element, xml(one.type), xml(one.message));
    }
  }
  return text + "</testsuite>\n</testsuites>\n";
}

}  // namespace decodelab
