// The page of a comparison says what was compared, what differs, what came out and why, and nothing can break out of
// it.
#include "reports/page/comparison/comparison_report.h"

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/statistics/labels.h"
#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"
#include "tests/reports/sample_trace.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::kHostile;
using testing::sample_trace;
using testing::SampleOptions;
using testing::TemporaryFolder;

RunData run_of(double factor, std::uint64_t seed, std::int64_t id) {
  SampleOptions options;
  options.phases = {Phase::decode};
  options.batches = {1};
  options.lengths = {64, 128};
  options.arms = {{"causal", factor}, {"bigcode", 0.7 * factor}};
  options.launches = 10;
  options.with_failures = false;
  options.seed = seed;
  RunData data = testing::sample_run(options);
  data.run.id = id;
  data.run.uuid = fmt::format("uuid-{}", id);
  data.run.name = fmt::format("night-{}", id);
  for (CellArmRecord& row : data.cell_arms) {
    row.counters = {{"counted_steps", 8}, {"operators", 80}};
  }
  return data;
}

/// Two commits on two machines: the second is slower, counts more, has a cell and an arm of its own, and both were
/// traced.
struct Pair {
  RunData before = run_of(1, 1, 1);
  RunData after = run_of(1.25, 2, 2);

  Pair() {
    after.run.machine.cpu = "Another processor";
    after.run.build.commit = "fedcba987654";
    after.cells[1].length = 256;
    for (CellArmRecord& row : after.cell_arms) {
      if (row.cell_id == 1 && row.arm_id == 1) {
        row.counters["operators"] = 96;
      }
    }
    after.arms[1].label = "flash";
    before.traces = {sample_trace(1, 1)};
    after.traces = {sample_trace(1, 1, 1.5, 0.5)};
  }
  RunComparison comparison() const { return make_comparison({&before, ""}, {&after, ""}); }
};

TEST(ComparisonReport, SaysWhatWasComparedAndHowItCameOut) {
  const Pair pair;
  const RunComparison comparison = pair.comparison();
  ASSERT_EQ(comparison.rows.size(), 1U);
  EXPECT_EQ(compared_sentence(comparison),
            "night-2 (run 2) (commit fedcba987654) against night-1 (run 1) (commit 0123456789ab): causal, 1 rows.");
  EXPECT_TRUE(contains(outcome_sentence(comparison),
                       {"Of 1 rows: 1 looks slower.", "hints, no verdicts", "processor: AMD EPYC"}));
  const Table table = comparison_overview_table(comparison);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].fields[0], "causal");
  EXPECT_EQ(table.rows[0].fields[2], format_ratio(*comparison.rows[0].time_ratio));
  EXPECT_EQ(table.rows[0].fields[5], "1 looks slower");
}

TEST(ComparisonReport, NamesTheFieldsThatDifferAndThoseThatDoNot) {
  const Table table = comparison_differences_table(Pair().comparison());
  std::map<std::string, std::vector<std::string>> fields;
  for (const TableRow& row : table.rows) {
    fields[row.fields[0]] = {row.fields[1], row.fields[2]};
  }
  EXPECT_EQ(fields["Processor"], (std::vector<std::string>{"AMD EPYC 9654 96-Core Processor", "Another processor"}));
  EXPECT_EQ(fields["Commit"], (std::vector<std::string>{"0123456789ab", "fedcba987654"}));
  EXPECT_EQ(fields.size(), 2U);
  EXPECT_TRUE(contains(table.notes.at(0), {"Equal on both sides", "Memory", "libtorch"}));
}

TEST(ComparisonReport, ShowsCountersThatMovedAndOnlyThose) {
  const Table table = comparison_counters_table(Pair().comparison());
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].fields, (std::vector<std::string>{"operators", "causal", "10", "12", "b1 tg @ d64"}));
  const RunData run = run_of(1, 1, 1);
  const Table none = comparison_counters_table(make_comparison({&run, "causal"}, {&run, "bigcode"}));
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(none.notes.at(0), "No counter moved in any of 2 cells.");
}

TEST(ComparisonReport, ShowsStagesWhoseMovesAddUpInTheDigitsShown) {
  const auto tables = comparison_moves_tables(Pair().comparison());
  ASSERT_EQ(tables.size(), 1U);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < tables[0].rows.size(); ++i) {
    sum += std::stod(tables[0].rows[i].fields[3]);
  }
  EXPECT_EQ(tables[0].rows.back().fields[0], "the whole step");
  EXPECT_NEAR(sum, std::stod(tables[0].rows.back().fields[3]), 1e-9);
  EXPECT_NEAR(sum, (32e6 - 8e6) / 16 / 1e6, 0.0051) << "in ms";
  EXPECT_EQ(tables[0].rows[0].fields[0], "attention");
  EXPECT_EQ(tables[0].rows[tables[0].rows.size() - 2].fields[0], kResidualRow);
}

TEST(ComparisonReport, ShowsWhatOnlyOneSideHasAsSuch) {
  const Table table = comparison_one_sided_table(Pair().comparison());
  std::string rows;
  for (const TableRow& row : table.rows) {
    rows += row.fields[0] + "/" + row.fields[1] + "/" + row.fields[3] + ";";
  }
  EXPECT_EQ(rows,
            "the baseline/bigcode/b1 tg @ d128, b1 tg @ d64;the baseline/causal/b1 tg @ d128;"
            "the candidate/causal/b1 tg @ d256;the candidate/flash/b1 tg @ d256, b1 tg @ d64;");
}

TEST(ComparisonReport, GivesVerdictsToArmsOfOneRunAndHintsToTwoRuns) {
  const RunData run = run_of(1, 1, 1);
  const RunComparison paired = make_comparison({&run, "causal"}, {&run, "bigcode"});
  for (const ComparedCell& row : paired.rows) {
    EXPECT_EQ(comparison_reading(row), "FASTER");
  }
  EXPECT_TRUE(paired.one_sided.empty());
  RunData unfinished = run;
  unfinished.run.ended_unix_ns = 0;
  const RunComparison open = make_comparison({&unfinished, "causal"}, {&unfinished, "bigcode"});
  EXPECT_EQ(comparison_reading(open.rows[0]), "looks faster");
  EXPECT_TRUE(contains(to_text(comparison_page_table(open)), {"and 1 more: the run is not finished."}));
}

TEST(ComparisonReport, ComparesNoRowThatIsNotOk) {
  RunData run = run_of(1, 1, 1);
  run.cell_arms[1].status = RowStatus::incorrect;
  run.cell_arms[1].reason = "tokens differ";
  const RunComparison comparison = make_comparison({&run, "causal"}, {&run, "bigcode"});
  EXPECT_FALSE(comparison.rows[0].time_ratio.has_value());
  EXPECT_EQ(comparison_reading(comparison.rows[0]), "not compared");
  EXPECT_TRUE(comparison.rows[1].time_ratio.has_value());
  EXPECT_TRUE(contains(to_text(comparison_page_table(comparison)), {"the candidate is incorrect: tokens differ."}));
}

TEST(ComparisonReport, IsOnePageWithoutScriptsOrResourcesWhoseLinksLeadSomewhere) {
  const Pair pair;
  const TemporaryFolder folder;
  std::ostringstream warnings;
  const std::vector<RunComparison> comparisons{pair.comparison()};
  write_comparison(comparisons, folder / "c", warnings);
  const std::string html = testing::read_file(folder / "c/compare.html");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_FALSE(std::regex_search(html, std::regex("(src|href)\\s*=\\s*[\"']?\\s*(https?:)?//", std::regex::icase)));
  EXPECT_TRUE(contains(html, {"Another processor", "data-run=2 data-cell=1>", "the whole step", "looks slower",
                              "decodelab compare 1 2 --out", "Two runs at two times"}));
  const std::regex link("href=\"#([^\"]+)\"");
  std::size_t links = 0;
  for (std::sregex_iterator match(html.begin(), html.end(), link), end; match != end; ++match, ++links) {
    EXPECT_TRUE(contains(html, {fmt::format("id=\"{}\"", (*match)[1].str())}));
  }
  EXPECT_EQ(links, 9U);
  const std::string markdown = testing::read_file(folder / "c/compare.md");
  EXPECT_TRUE(contains(markdown,
                       {"# decodelab comparison", "## Where the time moved", "| attention", "figures/ratios-1-2.svg"}));
  EXPECT_TRUE(std::filesystem::exists(folder / "c/figures/ratios-1-2.vl.json"));
  EXPECT_EQ(nlohmann::json::parse(testing::read_file(folder / "c/compare.json"))["rows"].size(), 1U);
}

TEST(ComparisonReport, TakesSeveralCandidates) {
  const Pair pair;
  const std::vector<RunComparison> comparisons{pair.comparison(), pair.comparison()};
  const std::string html = comparison_html(comparisons, {});
  EXPECT_TRUE(contains(html, {"id=\"c1-ratios\"", "id=\"c2-ratios\"", "2 comparisons"}));
}

TEST(ComparisonReport, LetsNoTextFromOutsideBreakOut) {
  Pair pair;
  pair.after.run.name = kHostile;
  pair.after.run.command = kHostile;
  pair.after.run.model.name = kHostile + std::string(10'000, 'x');
  pair.after.run.build.commit = kHostile;
  pair.after.arms[0].label = pair.before.arms[0].label = kHostile;
  pair.after.arms[0].engine = kHostile;
  pair.after.traces[0].shares[0].name = kHostile;
  pair.after.cell_arms[0].counters = {{"counted_steps", 8}, {kHostile, 80}};
  const std::vector<RunComparison> comparisons{pair.comparison()};
  const std::string html = comparison_html(comparisons, {});
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_TRUE(contains(html, {"&lt;/script&gt;&lt;script&gt;alert(&#39;1&#39;)"}));
  const std::string markdown = comparison_markdown(comparisons);
  // The command stands in an indented block, where Markdown shows it as it is.
  EXPECT_EQ(markdown.find("<script>"), markdown.rfind("<script>"));
}

}  // namespace
}  // namespace decodelab
