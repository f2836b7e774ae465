// The gate as workflow commands, which GitHub Actions shows beside the commit.
#include <fmt/format.h>

#include "base/text.h"
#include "reports/page/gate/gate_page.h"
#include "reports/page/gate/gate_words.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostAnnotations = 10;  // GitHub shows at most this many of a kind per step

// Escapes text as the runner decodes it (actions/toolkit, packages/core/src/command.ts).
std::string escaped(std::string_view text, bool property) {
  std::string result;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    result += special ? fmt::format("%{:02X}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return result;
}

struct Annotation {
  const char* kind;
  std::string title;
  std::string message;
};

std::string to_line(const Annotation& annotation) {
  return fmt::format("::{} title={}::{}\n", annotation.kind, escaped(one_line(annotation.title), true),
                     escaped(one_line(annotation.message, 2 * kOutsideText), false));
}

const char* kind_of(GateOutcome outcome, OnInconclusive on_inconclusive) {
  if (outcome == GateOutcome::pass || outcome == GateOutcome::proceed) {
    return "notice";
  }
  const bool passes = outcome == GateOutcome::inconclusive && on_inconclusive != OnInconclusive::fail;
  return passes ? "warning" : "error";
}

std::vector<Annotation> annotations_of(const GateDecision& decision) {
  const char* const kind = kind_of(decision.outcome, decision.policy.on_inconclusive);
  std::vector<Annotation> annotations;
  if (decision.outcome != GateOutcome::pass && decision.outcome != GateOutcome::proceed) {
    annotations.push_back(
        {kind, fmt::format("decodelab gate: {}", to_string(decision.outcome)), gate_headline(decision)});
  }
  for (const GateCounterCheck& check : decision.counters) {
    for (const CounterFinding& finding : check.findings) {
      const bool improved = finding.outcome == CounterOutcome::improved;
      annotations.push_back(
          {improved ? "notice" : "error", improved ? "A cost fell" : "Counters", gate_finding_words(finding)});
    }
  }
  // The headline names the first problem already.
  for (std::size_t i = 1; i < decision.problems.size(); ++i) {
    annotations.push_back({kind, to_string(decision.outcome), gate_problem_words(decision.problems[i])});
  }
  const bool settings = has_several_settings(decision);
  for (const GateRow* row : rows_by_evidence(decision)) {
    const bool slower = row->look.verdict == LookVerdict::slower;
    if (decision.outcome == GateOutcome::proceed || (!slower && row->look.verdict != LookVerdict::undecided)) {
      continue;
    }
    annotations.push_back({slower ? kind : "warning", gate_row_label(*row, settings), gate_row_words(*row, decision)});
  }
  return annotations;
}

}  // namespace

std::string gate_annotations(const GateDecision& decision) {
  const std::vector<Annotation> annotations = annotations_of(decision);
  std::string text;
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const bool last = i + 1 == kMostAnnotations && annotations.size() > kMostAnnotations;
    if (last) {
      return text + to_line({"warning", "decodelab gate",
                             fmt::format("{} more findings are in the report.", annotations.size() - i)});
    }
    text += to_line(annotations[i]);
  }
  return text;
}

}  // namespace decodelab
