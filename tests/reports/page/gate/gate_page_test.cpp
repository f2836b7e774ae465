// The same decision for a terminal, Markdown, JUnit, annotations and JSON; and no text from outside breaks out of any.
#include "reports/page/gate/gate_page.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/page/gate/gate_words.h"
#include "tests/reports/contains.h"
#include "tests/reports/gate_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::count_of;
using testing::gate_run;
using testing::lines_of;

/// The sentence that is wrong with text as XML 1.0 of elements and attributes alone; empty where nothing is.
std::string xml_mistake(const std::string& text) {
  std::vector<std::string> open;
  std::size_t at = text.find("?>");
  if (at == std::string::npos) {
    return "no declaration";
  }
  for (at += 2; at < text.size();) {
    if (text[at] != '<') {
      if (text[at] == '>' || text[at] == '&') {
        return "a bare > or & at " + std::to_string(at);
      }
      ++at;
      continue;
    }
    const bool closing = text[at + 1] == '/';
    at += closing ? 2 : 1;
    const std::size_t name_end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", at);
    const std::string name = text.substr(at, name_end - at);
    if (name.empty()) {
      return "no name of an element at " + std::to_string(at);
    }
    at = name_end;
    while (text[at] == ' ') {
      const std::size_t quote = text.find("=\"", at);
      const std::size_t end = text.find('"', quote + 2);
      const std::string value = text.substr(quote + 2, end - quote - 2);
      if (value.find_first_of("<>'\n") != std::string::npos) {
        return "an attribute with a bare character: " + value;
      }
      for (std::size_t i = value.find('&'); i != std::string::npos; i = value.find('&', i + 1)) {
        const std::string entity = value.substr(i, value.find(';', i) - i + 1);
        if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&#39;") {
          return "an unknown entity " + entity;
        }
      }
      at = end + 1;
    }
    const bool empty = text[at] == '/';
    at += empty ? 1 : 0;
    if (text[at] != '>') {
      return "an element that does not end at " + std::to_string(at);
    }
    ++at;
    if (closing) {
      if (open.empty() || open.back() != name) {
        return "</" + name + "> closes what is not open";
      }
      open.pop_back();
    } else if (!empty) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

void count(RunData& data) {
  for (CellArmRecord& row : data.cell_arms) {
    row.counters = {{"allocations", 3}, {"op.aten::cat", 4}};
  }
}

GateDecision passed() { return decide_gate(gate_run(), {}, 0); }
GateDecision failed() { return decide_gate(gate_run({.slow_down = 0.06}), {}, 0); }
GateDecision undecided() { return decide_gate(gate_run({.gate_blocks = 24, .noise = 0.15, .seed = 4}), {}, 3); }
GateDecision of_many_cells() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = 64; length < 64 + 25; ++length) {
    lengths.push_back(length);
  }
  return decide_gate(gate_run({.lengths = lengths, .slow_down = 0.06}), {}, 0);
}
GateDecision counted(std::int64_t cats) {
  RunData data = gate_run();
  count(data);
  for (CellArmRecord& row : data.cell_arms) {
    if (row.arm_id == 2) {
      row.counters["op.aten::cat"] = cats;
    }
  }
  return decide_gate(data, {}, 0);
}

/// All that a hostile store could say, in every place where text comes from outside.
GateDecision hostile(GateDecision decision) {
  const std::string evil =
      "</details><script>alert(\"1\")</script>'\x1b[31m\n::error::pwned\n##[error]x ]]> | a | [l](http://x) %0A,b:c "
      "\xff " +
      std::string(10'000, 'x');
  decision.run.name = decision.baseline = decision.candidate = evil;
  for (GateProblem& problem : decision.problems) {
    problem.words = evil;
  }
  decision.problems.push_back({std::nullopt, evil});
  decision.notes.push_back(evil);
  for (GateRow& row : decision.rows) {
    if (row.cell) {
      row.cell->dtype = row.cell->device = row.cell->scope = row.cell->fill = evil;
    }
    if (row.cell) {
      row.cell->batch = row.cell->length = INT64_MAX;
    }
  }
  for (GateCounterCheck& check : decision.counters) {
    check.findings.push_back(
        {.outcome = CounterOutcome::regression, .cell = check.cell, .arm = evil, .counter = evil, .words = evil});
  }
  return decision;
}

std::vector<GateDecision> all_decisions() {
  RunData differs = gate_run();
  differs.cell_arms[1].status = RowStatus::incorrect;
  differs.cell_arms[1].reason = "tokens differ from the reference's at step 3";
  RunData empty = gate_run();
  empty.blocks.clear();
  GateDecision early = decide_gate(gate_run({.gate_blocks = 6, .noise = 0.15, .seed = 4}), {}, 0);
  return {passed(),
          failed(),
          undecided(),
          of_many_cells(),
          counted(5),
          counted(3),
          early,
          decide_gate(differs, {}, 0),
          decide_gate(empty, {}, 0),
          decide_gate({}, {}, 0)};
}

TEST(GatePage, HeadlinesSayWhatWasDecidedInTheDesignsWords) {
  EXPECT_TRUE(
      contains(gate_headline(passed()), {"PASS: no row of 3 is slower by its margin (6 gate blocks, 12 launches)."}));
  EXPECT_TRUE(contains(gate_headline(failed()),
                       {"FAIL: b1 tg @ d", "is slower (p = 0.0156, best estimate +", "; and 2 more."}));
  EXPECT_TRUE(contains(gate_headline(counted(5)), {"FAIL: b1 tg @ d64: op.aten::cat rose from 4 to 5; and 1 more."}));
  EXPECT_TRUE(contains(gate_headline(undecided()), {"INCONCLUSIVE: ", "24 gate blocks"}));
  const auto decisions = all_decisions();
  EXPECT_TRUE(contains(gate_headline(decisions[6]),
                       {"CONTINUE: ", "3 of 3 rows undecided after 6 gate blocks", "next look is at 10, 8.0 minutes"}));
  EXPECT_TRUE(contains(gate_headline(decisions[7]),
                       {"OUTPUTS DIFFER: b1 tg @ d64: the candidate is incorrect: tokens differ"}));
  EXPECT_TRUE(
      contains(gate_headline(decisions[8]), {"CONTINUE: no look yet after 0 gate blocks; the next look is at 6"}));
  EXPECT_TRUE(contains(gate_headline(decisions[9]), {"INVALID: the run has no cell; and 1 more"}));
}

TEST(GatePage, RowsSayEstimateIntervalAndWhatIsMissing) {
  const GateDecision decision = undecided();
  std::string text = gate_text(decision);
  std::ranges::replace(text, '\n', ' ');
  EXPECT_TRUE(contains(text, {"b1 tg @ d64", "composite", "at least 90 % whatever the stopping",
                              "undecided (p = ", "more gate blocks", "minutes", "Detects"}));
  EXPECT_TRUE(contains(gate_text(passed()), {"pass", "3.0 %", "1.5 %"}));
  EXPECT_TRUE(contains(gate_row_words(passed().rows[0], passed()), {"not slower by 3.0 %", "at most "}));
}

TEST(GatePage, NotesTellLaunchOrderVoidBlocksAndFreshEstimates) {
  const std::string calm = gate_text(decide_gate(gate_run({.noise = 0.002, .launch_order = 0.05}), {}, 0));
  EXPECT_TRUE(contains(calm, {"candidate's process starts first, 3 of 3 rows differ"}));
  const GateDecision fresh = decide_gate(gate_run({.gate_blocks = 12, .slow_down = 0.06}), {}, 0);
  EXPECT_TRUE(contains(gate_text(fresh), {"measured again in 6 fresh gate blocks: +"}));
  RunData data = gate_run({.blocks = 8});
  data.blocks.front().other_cpu_share = 0.5;
  EXPECT_TRUE(contains(gate_text(decide_gate(data, {}, 0)), {"1 of 192 blocks are void"}));
}

TEST(GatePage, TextFitsATerminal) {
  for (const GateDecision& decision : all_decisions()) {
    for (const GateDecision& shown : {decision, hostile(decision)}) {
      for (const std::string& line : lines_of(gate_text(shown))) {
        EXPECT_LE(display_width(line), kTableWidth) << line;
        EXPECT_EQ(line.find('\x1b'), std::string::npos);
        const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
        EXPECT_FALSE(line.substr(start).starts_with("::")) << line;
        EXPECT_EQ(line.find("##["), std::string::npos);
      }
    }
  }
}

TEST(GatePage, MarkdownShowsTenRowsByEvidenceAndFoldsTheRest) {
  const GateDecision decision = of_many_cells();
  const std::string text = gate_markdown(decision);
  const std::size_t fold = text.find("<details>");
  ASSERT_NE(fold, std::string::npos);
  EXPECT_EQ(count_of(text.substr(0, fold), "| b1 tg @ d") + count_of(text.substr(0, fold), "| composite"), 10U);
  EXPECT_EQ(count_of(text.substr(fold), "| b1 tg @ d"), 25U);
  EXPECT_EQ(gate_markdown(passed()).find("<details>"), std::string::npos);
  const auto rows = rows_by_evidence(decision);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i]->look.verdict != LookVerdict::slower) {
      continue;
    }
    EXPECT_LE(rows[i - 1]->look.p_family, rows[i]->look.p_family);
  }
}

TEST(GatePage, MarkdownKeepsTextFromOutsideInItsPlace) {
  for (const GateDecision& decision : all_decisions()) {
    const std::string plain = gate_markdown(decision);
    const std::string text = gate_markdown(hostile(decision));
    EXPECT_EQ(text.find("<script"), std::string::npos);
    EXPECT_EQ(count_of(text, "</details>"), count_of(plain, "</details>"));
    EXPECT_EQ(text.find("[l](http"), std::string::npos) << "a link";
    EXPECT_LT(text.size(), 100'000U);
    for (const std::string& line : lines_of(text)) {
      EXPECT_FALSE(line.starts_with("::")) << line;
    }
  }
}

TEST(GatePage, JunitHasACaseForEveryRowAndCounterCheck) {
  const std::string text = gate_junit(failed());
  EXPECT_EQ(xml_mistake(text), "");
  EXPECT_EQ(count_of(text, "<testcase "), 3U);
  EXPECT_EQ(count_of(text, "<failure type=\"regression\""), 3U);
  EXPECT_TRUE(contains(
      text, {R"(tests="3" failures="3" errors="0" skipped="0")", R"(name="b1 tg @ d64")", "slower (p = 0.0156"}));
  const std::string counters = gate_junit(counted(5));
  EXPECT_TRUE(contains(counters, {"decodelab.gate.counters", "op.aten::cat rose from 4 to 5"}));
  EXPECT_EQ(count_of(counters, "<failure "), 2U);
  EXPECT_EQ(count_of(gate_junit(counted(3)), "<failure "), 0U) << "a cost that fell is no failure";
  EXPECT_EQ(count_of(gate_junit(counted(3)), "<testcase "), 5U);
}

TEST(GatePage, JunitShowsAnInconclusiveGateAsThePolicyTakesIt) {
  GateDecision decision = undecided();
  EXPECT_EQ(count_of(gate_junit(decision), "<error type=\"inconclusive\""), 3U);
  decision.policy.on_inconclusive = OnInconclusive::pass;
  EXPECT_EQ(count_of(gate_junit(decision), "<skipped type=\"inconclusive\""), 3U);
  decision.policy.on_inconclusive = OnInconclusive::fail;
  EXPECT_EQ(count_of(gate_junit(decision), "<failure type=\"inconclusive\""), 3U);
}

TEST(GatePage, JunitIsWellFormedWhateverComesFromOutsideAndNeverEmpty) {
  for (const GateDecision& decision : all_decisions()) {
    EXPECT_EQ(xml_mistake(gate_junit(decision)), "");
    EXPECT_EQ(xml_mistake(gate_junit(hostile(decision))), "");
    EXPECT_GE(count_of(gate_junit(decision), "<testcase "), 1U);
    const bool good = decision.exit_code == 0;
    EXPECT_EQ(count_of(gate_junit(decision), "<failure ") + count_of(gate_junit(decision), "<error ") == 0, good)
        << gate_headline(decision);
  }
}

TEST(GatePage, TheCheckOfXmlCatchesMistakes) {
  EXPECT_NE(xml_mistake("<?xml?><a b=\"<\"/>"), "");
  EXPECT_NE(xml_mistake("<?xml?><a>"), "");
  EXPECT_NE(xml_mistake("<?xml?><a></b>"), "");
  EXPECT_NE(xml_mistake("<?xml?><a b=\"&nbsp;\"/>"), "");
  EXPECT_NE(xml_mistake("<?xml?><a>&</a>"), "");
}

TEST(GatePage, AnnotationsAreEscapedAsTheRunnerUndoesIt) {
  EXPECT_EQ(gate_annotations(passed()), "");
  const std::string text = gate_annotations(failed());
  EXPECT_TRUE(contains(text, {"::error title=decodelab gate%3A FAIL::FAIL: b1 tg @ d", "+", "%25"}));
  GateDecision decision = failed();
  decision.problems = {{std::nullopt, ""}, {std::nullopt, "50%, a:b\r\nc"}};
  EXPECT_TRUE(contains(gate_annotations(decision), {"::error title=FAIL::50%25, a:b c\n"}));
  EXPECT_TRUE(contains(gate_annotations(counted(3)),
                       {"::notice title=A cost fell::b1 tg @ d64: op.aten::cat fell from 4 to 3"}));
  EXPECT_TRUE(gate_annotations(undecided()).starts_with("::warning title=decodelab gate%3A INCONCLUSIVE::"));
}

TEST(GatePage, AnnotationsAreTenLinesAtMostAndEachIsACommand) {
  for (const GateDecision& decision : all_decisions()) {
    for (const GateDecision& shown : {decision, hostile(decision)}) {
      const auto lines = lines_of(gate_annotations(shown));
      EXPECT_LE(lines.size(), 10U);
      for (const std::string& line : lines) {
        EXPECT_TRUE(line.starts_with("::error title=") || line.starts_with("::warning title=") ||
                    line.starts_with("::notice title="))
            << line;
        const std::size_t title = line.find("title=") + 6;
        EXPECT_EQ(line.substr(title, line.find("::", title) - title).find_first_of(",:"), std::string::npos) << line;
        EXPECT_LT(line.size(), 3000U);
      }
    }
  }
  EXPECT_TRUE(contains(gate_annotations(of_many_cells()), {"more findings are in the report"}));
}

TEST(GatePage, JsonHasTheDocumentedKeys) {
  const auto json = nlohmann::ordered_json::parse(gate_json(failed()));
  std::string keys;
  for (const auto& [key, value] : json.items()) {
    keys += key + " ";
  }
  EXPECT_EQ(
      keys,
      "schema_version decision exit_code stage headline run baseline candidate plan policy looks_done gate_blocks "
      "next_look gate_block_s problems notes counters rows ");
  std::string row_keys;
  for (const auto& [key, value] : json["rows"][0].items()) {
    row_keys += key + " ";
  }
  EXPECT_EQ(
      row_keys,
      "cell composite label gate_blocks time_ratio time_ratio_low time_ratio_high interval p_t p_sign_flip p_family "
      "margin verdict tests_disagree mde more_gate_blocks more_minutes launch_order fresh blocks void_blocks words ");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["decision"], "FAIL");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["rows"][0]["cell"]["length"], 64);
  EXPECT_TRUE(json["rows"][2]["cell"].is_null());
  EXPECT_NEAR(json["rows"][0]["time_ratio"].get<double>(), 1.06, 0.01);
  EXPECT_EQ(json["policy"]["looks"].size(), 4U);
}

TEST(GatePage, JsonIsValidWhateverComesFromOutside) {
  for (const GateDecision& decision : all_decisions()) {
    const auto json = nlohmann::json::parse(gate_json(hostile(decision)));
    EXPECT_EQ(json["decision"], to_string(decision.outcome));
    EXPECT_EQ(json["rows"].size(), decision.rows.size());
  }
}

TEST(GatePage, EffectsKeepTheirSignAndTheirWidth) {
  EXPECT_EQ(format_effect(std::log(1.0123)), "+1.23 %");
  EXPECT_EQ(format_effect(std::log(0.5)), "-50.0 %");
  EXPECT_EQ(format_effect(0), "+0.00 %");
  EXPECT_EQ(format_effect(50), "over +999 %");
  EXPECT_EQ(format_p(1.0 / 64), "0.0156");
  EXPECT_EQ(format_p(0.00001), "< 0.0001");
}

}  // namespace
}  // namespace decodelab
