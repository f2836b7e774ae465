// Tables of a run fit 100 columns, carry every row and explain every blank.
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "base/text.h"
#include "reports/page/tables/result_tables.h"
#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, display_width(line));
  }
  return widest;
}

TEST(Table, AlignsTextAndMarkdown) {
  const Table table{.title = "T",
                    .columns = {{"Name"}, {"ns", true}},
                    .rows = {{0, 0, {"a|b", "5"}}, {0, 0, {"c", "10"}}},
                    .notes = {"n"}};
  EXPECT_EQ(to_text(table), "T\nName  ns\n----  --\na|b    5\nc     10\nn\n");
  EXPECT_EQ(to_markdown(table), "### T\n\n| Name | ns |\n| ---- | --: |\n| a\\|b |  5 |\n| c    | 10 |\n\n- n\n");
}

TEST(Table, MarksNumbersInHtmlWithTheirRunAndCell) {
  const Table table{
      .title = "<b>", .columns = {{"Name"}, {"ns", true}}, .rows = {{3, 17, {"<script>", "5"}}}, .notes = {"<i>"}};
  const std::string html = to_html(table);
  EXPECT_TRUE(
      contains(html, {"&lt;b&gt;", "<tr data-run=3 data-cell=17><td>&lt;script&gt;<td class=n>5\n", "&lt;i&gt;"}));
  EXPECT_EQ(html.find("<script>"), std::string::npos);
}

TEST(ResultTables, FitAHundredColumnsWithLongLabels) {
  SampleOptions options;
  options.batches = {1, 128};
  options.lengths = {64, 16384};
  options.arms = {{"causal"},
                  {"bigcode,+decode-attention-split:parts=16,+fused-layer-norm,+kv-preallocated:multiple=8,-token-"
                   "choice-vectorized",
                   0.7},
                  {"bigcode", 0.8}};
  for (const std::int64_t launches : {1, 5}) {
    options.launches = launches;
    const RunSummary summary = summarize(sample_run(options));
    for (const Table& table : comparison_tables(summary)) {
      EXPECT_LE(widest_line(to_text(table)), kTableWidth + 20)
          << to_text(table);  // only the legend of a label without spaces is longer
      EXPECT_LE(table_width(table, 3, 2), kTableWidth);
      EXPECT_EQ(table.rows.at(0).fields.at(1), "causal") << "what is short stays as it is";
      EXPECT_TRUE(contains(table.notes.at(0), {"~+d", "..", " is bigcode,+decode-attention-split:parts=16,"}));
    }
    for (const Table& table : latency_tables(summary)) {
      EXPECT_LE(table_width(table, 3, 2), kTableWidth);
    }
  }
}

TEST(ResultTables, NameArmsInFullWhereWidthDoesNotMatter) {
  const RunSummary summary = summarize(sample_run());
  EXPECT_EQ(comparison_tables(summary).at(0).rows.at(2).fields.at(1), "~+fused-layer-norm");
  EXPECT_EQ(comparison_tables(summary, ArmLabels::full).at(0).rows.at(2).fields.at(1), "bigcode,+fused-layer-norm");
}

TEST(ResultTables, TellArmsApartThatDifferInTheirMiddle) {
  SampleOptions options;
  const std::string head = "bigcode,+decode-attention-split:parts=";
  const std::string tail = ",+kv-preallocated:multiple=8,-token-choice-vectorized";
  options.arms = {{"causal"}, {head + "16" + tail, 0.7}, {head + "32" + tail, 0.8}};
  const std::vector<Table> tables = comparison_tables(summarize(sample_run(options)));
  std::set<std::string> names;
  for (const TableRow& row : tables.at(0).rows) {
    names.insert(row.fields[1]);
  }
  EXPECT_EQ(names, (std::set<std::string>{"causal", "~+decod..:parts=16", "~+decod..:parts=32"}));
}

TEST(ResultTables, HaveTheColumnsAndRowsOfTgi) {
  SampleOptions options;
  options.phases = {Phase::generate, Phase::decode, Phase::prefill};
  options.batches = {1, 4};
  options.lengths = {512};
  const auto tables = latency_tables(summarize(sample_run(options)));
  ASSERT_EQ(tables.size(), 4U);  // an arm each
  const std::string text = to_text(tables[0]);
  EXPECT_TRUE(contains(
      text, {"causal, length 512", "Step", "Batch Size", "Average", "Lowest", "Highest", "p50", "p90", "p99"}));
  std::vector<std::string> steps;
  for (const TableRow& row : tables[0].rows) {
    steps.push_back(row.fields[0] + " " + row.fields[1]);
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"Prefill 1", "Prefill 4", "Decode (token) 1", "Decode (token) 4",
                                             "Decode (total) 1", "Decode (total) 4"}));
}

TEST(ResultTables, HaveDecodeTotalOnlyWhereWholeCompletionsWereTimed) {
  for (const Table& table : latency_tables(summarize(sample_run()))) {
    EXPECT_EQ(to_text(table).find("Decode (total)"), std::string::npos);
  }
}

TEST(ResultTables, KeepUnequalScopesApart) {
  RunData data = sample_run();
  for (CellRecord& cell : data.cells) {
    if (cell.phase == Phase::decode) {
      cell.scope = "forward";
    }
  }
  const auto tables = comparison_tables(summarize(data));
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_TRUE(contains(tables[0].title, {"scope step"}));
  EXPECT_TRUE(contains(tables[1].title, {"scope forward"}));
}

TEST(ResultTables, ExplainBlankPercentilesOnceBeneathTheLast) {
  const std::vector<Table> tables = latency_tables(summarize(sample_run()));
  EXPECT_EQ(tables.front().rows[0].fields[6], "");
  EXPECT_EQ(to_text(tables.front()).find("p90 is blank"), std::string::npos);
  EXPECT_TRUE(contains(to_text(tables.back()),
                       {"p90 is blank everywhere, as in b1 pp64 of causal (320 steps, 5 launches)", "p99 is blank"}));
}

TEST(ResultTables, ShowRowsThatDidNotRunWithTheirReason) {
  const RunSummary summary = summarize(sample_run());
  const auto tables = comparison_tables(summary);
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].rows.size(), summary.rows.size());
  const std::string text = to_text(tables[0]);
  EXPECT_TRUE(contains(text, {"oom", "unsupported", "b16 pp4093: causal is oom: needs 71.2 GiB, 60.1 GiB are available",
                              "needs at least 128 positions", "quotient of two medians",
                              "No ratio, since the baseline was not measured there: b16 pp4093 (bigcode)"}));
}

TEST(ResultTables, SayThatASingleLaunchSpeaksForItselfOnly) {
  SampleOptions options;
  options.launches = 1;
  EXPECT_TRUE(contains(to_text(comparison_tables(summarize(sample_run(options))).at(0)), {" this process only"}));
}

TEST(ResultTables, LedgerCountsWhatWasPlannedAndWhatWasLeftOut) {
  const Table ledger = ledger_table(summarize(sample_run()));
  ASSERT_EQ(ledger.rows.size(), 4U);
  EXPECT_EQ(ledger.rows[0].fields, (std::vector<std::string>{"causal (baseline)", "42", "41", "1", "1 oom"}));
  EXPECT_EQ(ledger.rows[3].fields,
            (std::vector<std::string>{"bigcode,+kv-pad:multiple=8", "42", "36", "6", "6 unsupported"}));
}

}  // namespace
}  // namespace decodelab
