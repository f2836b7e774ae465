// A report is complete, safe to open, small, and never half-written.
#include "reports/page/report.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <optional>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/figures/figure.h"
#include "reports/figures/vega_bundle.h"
#include "reports/page/page_text.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"
#include "tests/reports/sample_trace.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::count_of;
using testing::kHostile;
using testing::read_file;
using testing::sample_run;
using testing::SampleOptions;
using testing::TemporaryFolder;

// Sets DECODELAB_PYTHON for one test.
class ChosenPython {
 public:
  explicit ChosenPython(const char* python) {
    if (const char* before = std::getenv("DECODELAB_PYTHON")) {
      before_ = before;
    }
    setenv("DECODELAB_PYTHON", python, 1);
  }
  ~ChosenPython() { before_ ? setenv("DECODELAB_PYTHON", before_->c_str(), 1) : unsetenv("DECODELAB_PYTHON"); }
  ChosenPython(const ChosenPython&) = delete;
  ChosenPython& operator=(const ChosenPython&) = delete;

 private:
  std::optional<std::string> before_;
};

SampleOptions small() {
  SampleOptions options;
  options.batches = {1, 4};
  options.lengths = {64, 512};
  return options;
}

// The page as it is without a Python that draws.
std::string page_of(std::span<const RunData> runs) {
  const ChosenPython none("/nonexistent/python");
  const TemporaryFolder folder;
  std::ostringstream warnings;
  write_report(runs, folder / "r", warnings);
  return read_file(folder / "r/report.html");
}

std::string page_of(const RunData& run) { return page_of(std::span(&run, 1)); }

TEST(Report, WritesEveryFileAndLeavesNoTemporaryOnes) {
  const ChosenPython none("/nonexistent/python");
  const TemporaryFolder folder;
  std::ostringstream warnings;
  write_report(sample_run(small()), folder / "a/b", warnings);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "a/b")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"blocks.csv", "cells.csv", "figures", "report.html", "report.json",
                                             "report.md"}));
  EXPECT_TRUE(std::filesystem::exists(folder / "a/b/figures/decode-latency.vl.json"));
  EXPECT_TRUE(contains(warnings.str(), {"/nonexistent/python", "DECODELAB_PYTHON"}));
}

TEST(Report, DrawsFiguresAsSvgAndPngAndInlinesThem) {
  if (vega_bundle().empty()) {
    GTEST_SKIP() << "This build found no vl-convert-python, so there is nothing to draw with.";
  }
  const TemporaryFolder folder;
  std::ostringstream warnings;
  write_report(sample_run(small()), folder / "r", warnings);
  EXPECT_EQ(warnings.str(), "");
  const RunData data = sample_run(small());
  std::vector<std::string> stems;
  for (const Figure& figure : figures_of(summarize(data), data)) {
    stems.push_back(figure.name);
  }
  ASSERT_GT(stems.size(), 10U);
  for (const std::string& stem : stems) {
    const auto figures = folder / "r/figures";
    EXPECT_TRUE(read_file(figures / (stem + ".svg")).starts_with("<svg ")) << stem;
    EXPECT_TRUE(read_file(figures / (stem + ".png")).starts_with("\x89PNG")) << stem;
  }
  const std::string html = read_file(folder / "r/report.html");
  EXPECT_EQ(count_of(html, "<svg "), stems.size());
  EXPECT_TRUE(contains(html, {"currentColor", "bigcode,+fused-layer-norm"}));
  EXPECT_EQ(html.find("#24292e"), std::string::npos);  // ink follows the page's colours
}

TEST(Report, SaysWhatPythonSaidWhenItFails) {
  const TemporaryFolder folder;
  const auto python = folder / "python";
  std::ofstream(python) << "#!/bin/sh\necho Traceback\n"
                           "echo \"ModuleNotFoundError: No module named 'vl_convert'\" >&2\nexit 1\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const ChosenPython wrong(python.c_str());
  std::ostringstream warnings;
  write_report(sample_run(small()), folder / "r", warnings);
  EXPECT_TRUE(contains(warnings.str(), {"failed: ModuleNotFoundError: No module named 'vl_convert')"}));
  EXPECT_EQ(warnings.str().find("Traceback"), std::string::npos);
  EXPECT_TRUE(
      contains(read_file(folder / "r/report.html"), {"This figure was not drawn", "data-figure=\"decode-latency\""}));
}

TEST(Report, ReplacesAnOlderReport) {
  const ChosenPython none("/nonexistent/python");
  const TemporaryFolder folder;
  std::ostringstream warnings;
  RunData data = sample_run(small());
  write_report(data, folder / "r", warnings);
  data.run.name = "second";
  write_report(data, folder / "r", warnings);
  EXPECT_TRUE(contains(read_file(folder / "r/report.html"), {"second (run 1)"}));
}

TEST(Report, NamesAFolderThatCannotBeWritten) {
  std::ostringstream warnings;
  for (const char* folder : {"/proc/decodelab-report", "/dev/null/report"}) {
    try {
      write_report(sample_run(small()), folder, warnings);
      FAIL() << folder << " was written to";
    } catch (const std::invalid_argument& error) {
      EXPECT_TRUE(contains(error.what(), {folder, "--out"}));
    }
  }
  EXPECT_THROW(write_report(std::span<const RunData>(), "/tmp/x", warnings), std::invalid_argument);
}

TEST(Page, EscapesWhateverComesFromOutside) {
  SampleOptions options = small();
  options.arms = {{"causal"}, {kHostile, 0.7}};
  RunData data = sample_run(options);
  data.run.name = kHostile;
  data.run.command = kHostile;
  data.run.model.name = kHostile;
  data.run.build.commit = kHostile;
  data.run.machine.cpu = kHostile;
  data.cell_arms[1].status = RowStatus::failed;
  data.cell_arms[1].reason = kHostile;
  data.cell_arms[0].flags = {kHostile};
  const std::string html = page_of(data);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_TRUE(contains(html, {"&lt;/script&gt;&lt;script&gt;alert(&#39;1&#39;)"}));
  const std::string markdown = to_markdown(std::span(&data, 1));
  EXPECT_TRUE(contains(markdown, {"&lt;script&gt;"}));
  // The command stands in an indented block, where Markdown shows it as it is.
  EXPECT_EQ(count_of(markdown, "<script>"), 1U);
}

TEST(Page, LoadsNothingFromTheNetwork) {
  const std::string html = page_of(sample_run(small()));
  EXPECT_FALSE(
      std::regex_search(html, std::regex("(src|href|action|data)\\s*=\\s*[\"']?\\s*(https?:)?//", std::regex::icase)));
  EXPECT_EQ(html.find("@import"), std::string::npos);
  EXPECT_EQ(html.find("url("), std::string::npos);
  EXPECT_TRUE(contains(html, {"default-src 'none'"}));
}

TEST(Page, HasAStyleWhoseQuotesEndOnTheirLine) {
  // A broken string makes a browser drop the rules after it, silently.
  std::istringstream lines(kPageStyle);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(count_of(line, "\"") % 2, 0U) << line;
  }
}

TEST(Page, NamesTheCellAndRunOfEveryNumber) {
  const RunData data = sample_run(small());
  const std::string html = page_of(data);
  for (const CellRecord& cell : data.cells) {
    EXPECT_TRUE(contains(html, {"data-run=1 data-cell=" + std::to_string(cell.id) + ">"}));
  }
}

TEST(Page, SaysWhatWasComparedAndWhatItResolves) {
  EXPECT_TRUE(
      contains(page_of(sample_run(small())),
               {"against causal: synthetic:santacoder, 8 cells.", "Resolves &gt;= ", "% at 80 % power",
                "5 launches of 2 blocks", "in-run null spans 0 in", "random weights, timing only", "How time was taken",
                "Glossary", "decodelab sweep -m synthetic:santacoder", "decodelab report 1 --out",
                "prefers-color-scheme: dark", "AMD EPYC", "<details><summary>Data of this figure"}));
}

TEST(Page, ResolvesNothingWithASingleLaunch) {
  SampleOptions options = small();
  options.launches = 1;
  EXPECT_TRUE(contains(page_of(sample_run(options)), {"this process only and resolve nothing"}));
}

TEST(Page, ShowsARunThatHasNotMeasuredAnything) {
  RunData data = sample_run(small());
  data.blocks.clear();
  data.run.ended_unix_ns = 0;
  for (CellArmRecord& row : data.cell_arms) {
    row = {row.cell_id, row.arm_id, RowStatus::planned, "", {}, {}, 0, {}};
  }
  EXPECT_TRUE(contains(page_of(data), {"Nothing was measured", "not run", "not finished"}));
}

TEST(Page, IsInteractiveWhereJavaScriptRuns) {
  if (vega_bundle().empty()) {
    GTEST_SKIP() << "This build has no JavaScript bundle: cmake/vega.cmake did not find vl-convert-python.";
  }
  EXPECT_TRUE(contains(page_of(sample_run(small())), {"id=\"vega\">H4sI", "vegaEmbed"}));
}

RunData run_of_lengths(std::int64_t lengths) {
  SampleOptions options;
  options.batches = {1, 2, 4, 8, 16, 32};
  options.lengths.clear();
  for (std::int64_t i = 0; i < lengths; ++i) {
    options.lengths.push_back(64 + i * 163);
  }
  options.arms = {{"causal"}, {"bigcode", 0.7}, {"bigcode,+fused-layer-norm", 0.69}};
  return sample_run(options);
}

// Returns the processor time of a page in seconds, which other programs on the machine hardly stretch.
double seconds_of_page(const RunData& data) {
  const std::clock_t start = std::clock();
  page_of(data);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Page, StaysWithinItsSizeAndGrowsInTimeAsItsCellsDo) {
  const RunData data = run_of_lengths(25);
  ASSERT_EQ(data.cells.size(), 300U);
  const TemporaryFolder folder;
  std::ostringstream warnings;
  write_report(data, folder / "r", warnings);  // with drawings, where they can be made
  EXPECT_LE(std::filesystem::file_size(folder / "r/report.html"), 2'500'000U);
  // Of five times the cells: a page whose cost grows with their square takes 25 times as long.
  EXPECT_LT(seconds_of_page(run_of_lengths(10)), 12 * seconds_of_page(run_of_lengths(2)));
}

TEST(Page, LeavesOutWhatStandsElsewhereWhenItWouldGrowTooLarge) {
  SampleOptions options;
  options.batches = {1, 2, 4, 8, 16, 32};
  options.lengths.clear();
  for (std::int64_t i = 0; i < 60; ++i) {
    options.lengths.push_back(64 + i * 67);
  }
  options.launches = 2;
  options.blocks = 1;
  options.steps = 8;
  const std::string html = page_of(sample_run(options));
  EXPECT_TRUE(contains(html, {"Its data: the tables below, and cells.csv.", "where they are remarkable"}));
  EXPECT_EQ(html.find("Data of this figure"), std::string::npos);
}

TEST(Page, LeavesOutABlockWhoseTelemetryIsNoNumber) {
  SampleOptions options = small();
  options.launches = 10;
  RunData data = sample_run(options);
  for (BlockRecord& block : data.blocks) {
    if (block.launch == 0 && block.block == 0) {
      block.other_cpu_share = std::numeric_limits<double>::infinity();
    }
  }
  const std::string html = page_of(data);
  EXPECT_TRUE(contains(html, {"void-blocks"}));
  for (const char* word : {">nan", ">inf", " nan ", " inf ", "[nan", "[inf"}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
}

TEST(Report, WritesOnlyTheFormatsThatAreAskedFor) {
  const ChosenPython none("/nonexistent/python");
  const auto names = [&](std::string_view formats, bool traced) {
    const TemporaryFolder folder;
    std::ostringstream warnings;
    RunData data = sample_run(small());
    if (traced) {
      data.traces = {testing::sample_trace(1, 1)};
    }
    write_report(std::span(&data, 1), folder / "r", warnings, parse_report_formats(formats));
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "r")) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("md", false), Names{"report.md"});
  EXPECT_EQ(names("html", false), Names{"report.html"}) << "its figures are inside";
  EXPECT_EQ(names("csv,json", true), (Names{"blocks.csv", "cells.csv", "report.json", "traces.csv"}));
  EXPECT_EQ(names("svg", false), Names{"figures"}) << "the specs, where nothing can draw";
  for (const char* wrong : {"", "pdf", "md,", "md;json"}) {
    EXPECT_TRUE(
        contains(testing::message_of([&] { parse_report_formats(wrong); }), {"--format", report_format_names()}));
  }
}

TEST(Report, HasTheTablesOfTgiAndThePredictionsInMarkdown) {
  const RunData data = sample_run(small());
  EXPECT_TRUE(
      contains(to_markdown(std::span(&data, 1)), {"| Decode (token) |", "tokens/secs", "Throughput of causal",
                                                  "Completions predicted from the curves", "b1 pp64 + 128 tokens"}));
}

TEST(Report, SeveralRunsStandSideBySide) {
  RunData second = sample_run(small());
  second.run.id = 2;
  second.run.name = "other";
  second.run.machine.cpu = "Another processor";
  second.cells.erase(second.cells.begin());
  std::erase_if(second.cell_arms, [](const CellArmRecord& row) { return row.cell_id == 1; });
  std::erase_if(second.blocks, [](const BlockRecord& block) { return block.cell_id == 1; });
  const std::vector<RunData> runs{sample_run(small()), second};
  const std::string html = page_of(runs);
  EXPECT_TRUE(contains(
      html, {"sample (run 1)", "other (run 2)", "The runs differ in: Processor.", "Rows that not every run has",
             "id=\"r1-decode-latency\"", "id=\"r2-decode-latency\"", "decodelab report 1 2 --out"}));
  const ChosenPython none("/nonexistent/python");
  const TemporaryFolder folder;
  std::ostringstream warnings;
  write_report(runs, folder / "r", warnings);
  const auto report = nlohmann::json::parse(read_file(folder / "r/report.json"));
  EXPECT_EQ(report["runs"].size(), 2U);
  EXPECT_EQ(count_of(read_file(folder / "r/cells.csv"), "run,arm,model"), 1U);
}

TEST(Report, JsonHasEveryRowOfTheRun) {
  const ChosenPython none("/nonexistent/python");
  const TemporaryFolder folder;
  std::ostringstream warnings;
  const RunData data = sample_run(small());
  write_report(data, folder / "r", warnings);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "r/report.json"))["rows"].size(),
            data.cells.size() * data.arms.size());
  EXPECT_EQ(count_of(read_file(folder / "r/cells.csv"), "\n"), data.cells.size() * data.arms.size() + 1);
}

}  // namespace
}  // namespace decodelab
