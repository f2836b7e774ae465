// The gate as one JSON object, with everything that the decision rests on.
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/json_values.h"
#include "base/units.h"
#include "reports/page/exports/json.h"
#include "reports/page/gate/gate_page.h"
#include "reports/page/gate/gate_words.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

Json cell_of(const std::optional<CellRecord>& cell) {
  if (!cell) {
    return nullptr;
  }
  return {{"phase", cell->phase},   {"batch", cell->batch},     {"length", cell->length}, {"dtype", cell->dtype},
          {"device", cell->device}, {"threads", cell->threads}, {"scope", cell->scope},   {"fill", cell->fill}};
}

Json ratio_of(std::size_t values, double estimate, const std::optional<Interval>& interval) {
  return {{"gate_blocks", values},
          {"time_ratio", values == 0 ? Json(nullptr) : Json(std::exp(estimate))},
          {"time_ratio_low", interval ? Json(std::exp(interval->low)) : Json(nullptr)},
          {"time_ratio_high", interval ? Json(std::exp(interval->high)) : Json(nullptr)}};
}

Json ratio_of(const GateEstimate& estimate) { return ratio_of(estimate.values, estimate.estimate, estimate.interval); }

const char* verdict_key(LookVerdict verdict) {
  switch (verdict) {
    case LookVerdict::slower: return "slower";
    case LookVerdict::faster: return "faster";
    case LookVerdict::within: return "within";
    case LookVerdict::undecided: return "undecided";
  }
  return "";
}

Json row_of(const GateRow& row, const GateDecision& decision) {
  const LookContrast& look = row.look;
  Json json{{"cell", cell_of(row.cell)}, {"composite", !row.cell.has_value()}, {"label", gate_row_label(row)}};
  json.update(ratio_of(look.values, look.estimate, look.interval));
  const bool timed = look.more && decision.gate_block_s;
  json.update(
      Json{{"interval", kIntervalWithLooks},
           {"p_t", look.p_t},
           {"p_sign_flip", look.p_sign_flip},
           {"p_family", look.p_family},
           {"margin", row.margin},
           {"verdict", verdict_key(look.verdict)},
           {"tests_disagree", look.tests_disagree},
           {"mde", or_null(look.mde)},
           {"more_gate_blocks", or_null(look.more)},
           {"more_minutes",
            timed ? Json(static_cast<double>(*look.more) * *decision.gate_block_s / kSecondsOfAMinute) : Json(nullptr)},
           {"launch_order", ratio_of(row.launch_order)},
           {"fresh", row.fresh ? ratio_of(*row.fresh) : Json(nullptr)},
           {"blocks", row.blocks},
           {"void_blocks", row.void_blocks},
           {"words", gate_row_words(row, decision)}});
  return json;
}

const char* outcome_key(CounterOutcome outcome) {
  switch (outcome) {
    case CounterOutcome::invalid: return "invalid";
    case CounterOutcome::regression: return "regression";
    case CounterOutcome::improved: return "improved";
  }
  return "";
}

Json counters_of(const GateDecision& decision) {
  Json checks = Json::array();
  for (const GateCounterCheck& check : decision.counters) {
    Json findings = Json::array();
    for (const CounterFinding& finding : check.findings) {
      findings.push_back({{"outcome", outcome_key(finding.outcome)},
                          {"counter", finding.counter},
                          {"expected", finding.accepted},
                          {"counted", finding.counted},
                          {"words", finding.words}});
    }
    checks.push_back({{"cell", cell_of(check.cell)},
                      {"against", check.accepted ? "accepted" : "baseline"},
                      {"findings", std::move(findings)}});
  }
  return checks;
}

}  // namespace

std::string gate_json(const GateDecision& decision) {
  Json problems = Json::array();
  for (const GateProblem& problem : decision.problems) {
    problems.push_back({{"cell", cell_of(problem.cell)}, {"words", problem.words}});
  }
  Json rows = Json::array();
  for (const GateRow& row : decision.rows) {
    rows.push_back(row_of(row, decision));
  }
  const RunRecord& run = decision.run;
  return json_text({{"schema_version", kReportSchemaVersion},
                    {"decision", to_string(decision.outcome)},
                    {"exit_code", decision.exit_code},
                    {"stage", to_string(decision.stage)},
                    {"headline", gate_headline(decision)},
                    {"run", {{"id", run.id}, {"uuid", run.uuid}, {"name", run.name}}},
                    {"baseline", decision.baseline},
                    {"candidate", decision.candidate},
                    {"plan", decision.plan},
                    {"policy", Json::parse(to_json(decision.policy))},
                    {"looks_done", decision.looks_done},
                    {"gate_blocks", decision.gate_blocks},
                    {"next_look", or_null(decision.next_look)},
                    {"gate_block_s", or_null(decision.gate_block_s)},
                    {"problems", std::move(problems)},
                    {"notes", decision.notes},
                    {"counters", counters_of(decision)},
                    {"rows", std::move(rows)}},
                   2) +
         "\n";
}

}  // namespace decodelab
