// One list of sections, rendered twice.
#include "reports/page/comparison/comparison_report.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/render.h"
#include "reports/page/comparison/comparison_figure.h"
#include "reports/page/exports/json.h"
#include "reports/page/page_text.h"
#include "reports/page/tables/answer.h"
#include "reports/page/tables/overview.h"
#include "reports/page/work_folder.h"

namespace decodelab {
namespace {

struct ComparedSection {
  std::string id;
  std::string title;
  std::vector<std::string> paragraphs;
  std::optional<Figure> figure;
  std::vector<Table> tables;
};

constexpr const char* kPairedText =
    "Both sides ran in the same blocks, in an order that is its own mirror image, so what the machine did meanwhile "
    "cancels. Words in capitals are verdicts by the rules of a run, with all cells as one family: the chance that any "
    "FASTER or SLOWER is wrong is at most 5 %. SAME: the whole interval lies within 1 %. INCONCLUSIVE: more launches "
    "are "
    "needed.";
constexpr const char* kUnpairedText =
    "These are two runs, at two times. Whatever else changed between them (another program on the machine, its clock, "
    "its "
    "memory) is in the ratio and not in the interval, so 'looks faster' and 'looks slower' are hints and no verdicts. "
    "For a verdict "
    "measure both in one sweep: two arms of one build, or `--worker` for another build or engine.";

constexpr const char* kCellsText =
    "A cell is one point of the sweep: 'b4 pp512' is the prefill of 4 prompts of 512 tokens, 'b4 tg @ d4096' one step "
    "of decode for 4 "
    "rows that begins with 4096 tokens held, 'b4 gen @ d512' whole completions after 512 tokens. An arm is what "
    "decodes: a "
    "preset of optimizations with some added (+) or removed (-), or another engine.";
constexpr const char* kRatiosText =
    "The time ratio is the candidate's time over the baseline's: 0.5 is twice as fast. Its interval holds the true "
    "ratio in 95 % of "
    "cases; a launch is a fresh process, the unit that the interval is over. Counters are counts of what a step did, a "
    "stage is a part of a step, and what lies in no stage has a row of its own.";

// Longer than any command that a person writes: a command that was cut could not be run again.
constexpr std::size_t kLongestCommand = 4000;

std::string title_of(const RunComparison& comparison) {
  const auto& rows = comparison.rows;
  const auto of_one_pair = [&](const ComparedCell& row) {
    return row.arm == rows.front().arm && row.baseline_arm == rows.front().baseline_arm;
  };
  if (comparison.is_one_run() && !rows.empty() && std::ranges::all_of(rows, of_one_pair)) {
    return fmt::format("{} compared with {} in {}", rows.front().arm, rows.front().baseline_arm,
                       run_title(comparison.baseline));
  }
  return fmt::format("{} compared with {}", run_title(comparison.candidate), run_title(comparison.baseline));
}

std::vector<ComparedSection> sections_of(const RunComparison& comparison) {
  std::vector<ComparedSection> sections;
  sections.push_back({.id = "short",
                      .title = "In short",
                      .paragraphs = {},
                      .figure = std::nullopt,
                      .tables = {comparison_overview_table(comparison)}});
  sections.push_back(
      {.id = "differences",
       .title = "What differs between the two",
       .paragraphs = {comparison.is_one_run()
                          ? "Two arms of one run: the same machine, weights, prompts and blocks. What else differs:"
                          : "Everything below may come from any of these."},
       .figure = std::nullopt,
       .tables = {comparison_differences_table(comparison)}});
  sections.push_back({.id = "ratios",
                      .title = "How fast",
                      .paragraphs = {comparison.is_one_run() ? kPairedText : kUnpairedText},
                      .figure = comparison_figure(comparison),
                      .tables = {comparison_page_table(comparison, true)}});
  sections.push_back({.id = "counters",
                      .title = "What it did differently",
                      .paragraphs = {},
                      .figure = std::nullopt,
                      .tables = {comparison_counters_table(comparison)}});
  if (sections.back().tables.front().rows.empty()) {
    sections.back().paragraphs = sections.back().tables.front().notes;
    sections.back().tables.clear();
  }
  sections.push_back({.id = "moved",
                      .title = "Where the time moved",
                      .paragraphs = {},
                      .figure = std::nullopt,
                      .tables = comparison_moves_tables(comparison)});
  if (sections.back().tables.empty()) {
    sections.back().paragraphs = {
        "No cell has a trace on both sides, so nothing is known of the stages. `decodelab trace` records one."};
  }
  sections.push_back({.id = "one-sided",
                      .title = "What only one side has",
                      .paragraphs = {},
                      .figure = std::nullopt,
                      .tables = {comparison_one_sided_table(comparison)}});
  if (sections.back().tables.front().rows.empty()) {
    sections.back().tables.clear();
    sections.back().paragraphs = {"Both sides have the same cells of the arms that were compared."};
  }
  sections.push_back({.id = "reading",
                      .title = "How to read it",
                      .paragraphs = {kCellsText, kRatiosText},
                      .figure = std::nullopt,
                      .tables = {}});
  return sections;
}

std::string selector_of(const RunComparison& comparison, bool candidate) {
  const RunRecord& run = candidate ? comparison.candidate : comparison.baseline;
  if (!comparison.is_one_run() || comparison.rows.empty()) {
    return std::to_string(run.id);
  }
  const ComparedCell& row = comparison.rows.front();
  return fmt::format("{}:{}", run.id, candidate ? row.arm : row.baseline_arm);
}

/// Returns the commands that measured the runs, and the one that makes this page.
std::string commands_of(const RunComparison& comparison) {
  std::string text = one_line(comparison.baseline.command, kLongestCommand) + "\n";
  if (!comparison.is_one_run()) {
    text += one_line(comparison.candidate.command, kLongestCommand) + "\n";
  }
  return text + fmt::format("decodelab compare {} {} --out comparison\n", selector_of(comparison, false),
                            selector_of(comparison, true));
}

std::string section_html(const ComparedSection& section, const std::string& prefix, const std::string& drawing) {
  std::string html =
      fmt::format("<section id=\"{}{}\">\n<h2>{}</h2>\n", prefix, section.id, escape_html(section.title));
  for (const std::string& paragraph : section.paragraphs) {
    html += fmt::format("<p>{}</p>\n", escape_html(paragraph));
  }
  if (section.figure) {
    html += drawing.empty()
                ? "<p class=\"soft\">The figure was not drawn when this page was written; the table below has its "
                  "numbers.</p>\n"
                : fmt::format(
                      "<figure>\n<h3>{}</h3>\n<div class=\"drawing\" role=\"img\" aria-label=\"{}\">{}</div>\n"
                      "<figcaption>{}</figcaption>\n</figure>\n",
                      escape_html(section.figure->title), escape_html(section.figure->title), in_page_colors(drawing),
                      escape_html(section.figure->caption));
  }
  for (const Table& table : section.tables) {
    html += to_html(table);
  }
  return html + "</section>\n";
}

std::string prefix_of(std::size_t index, std::size_t count) { return count == 1 ? "" : fmt::format("c{}-", index + 1); }

std::string comparison_section_html(const RunComparison& comparison, const std::string& prefix, bool several,
                                    const std::string& drawing) {
  std::string html;
  if (several) {
    html += fmt::format("<h2>{}</h2>\n", escape_html(title_of(comparison)));
  }
  html += fmt::format("<div class=\"banner\" id=\"{}verdict\">\n<p><b>{}</b></p>\n<p>{}</p>\n</div>\n", prefix,
                      escape_html(answer_of(comparison.rows, comparison.is_one_run())),
                      escape_html(compared_sentence(comparison) + " " + outcome_sentence(comparison)));
  for (const ComparedSection& section : sections_of(comparison)) {
    html += section_html(section, prefix, drawing);
  }
  return html + fmt::format("<section id=\"{}repeat\">\n<h2>Repeat it</h2>\n<pre>{}</pre>\n</section>\n", prefix,
                            escape_html(commands_of(comparison)));
}

std::string navigation(std::span<const RunComparison> comparisons) {
  std::string html = "<nav>";
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const std::string prefix = prefix_of(i, comparisons.size());
    if (comparisons.size() > 1) {
      html += fmt::format("<b>{}</b>&ensp;", escape_html(title_of(comparisons[i])));
    }
    html += fmt::format("<a href=\"#{}verdict\">Outcome</a>", prefix);
    for (const ComparedSection& section : sections_of(comparisons[i])) {
      html += fmt::format("<a href=\"#{}{}\">{}</a>", prefix, section.id, escape_html(section.title));
    }
    html += fmt::format("<a href=\"#{}repeat\">Repeat it</a>", prefix);
  }
  return html + "</nav>\n";
}

}  // namespace

std::string compared_sentence(const RunComparison& comparison) {
  std::vector<std::string> pairs;
  for (const ComparedCell& row : comparison.rows) {
    std::string pair = row.arm == row.baseline_arm ? row.arm : fmt::format("{} against {}", row.arm, row.baseline_arm);
    if (std::ranges::find(pairs, pair) == pairs.end()) {
      pairs.push_back(std::move(pair));
    }
  }
  std::string arms = pairs.empty() ? "nothing" : pairs.front();
  if (pairs.size() > 1) {
    arms += fmt::format(" and {} more arm{}", pairs.size() - 1, pairs.size() == 2 ? "" : "s");
  }
  const std::string where = comparison.is_one_run()
                                ? run_title(comparison.candidate)
                                : fmt::format("{} (commit {}) against {} (commit {})", run_title(comparison.candidate),
                                              comparison.candidate.build.commit, run_title(comparison.baseline),
                                              comparison.baseline.build.commit);
  return fmt::format("{}: {}, {} rows.", where, arms, comparison.rows.size());
}

std::string outcome_sentence(const RunComparison& comparison) {
  std::map<std::string, std::size_t> readings;
  for (const ComparedCell& row : comparison.rows) {
    ++readings[comparison_reading(row)];
  }
  std::string counts;
  for (const auto& [reading, count] : readings) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : "; ", count, reading);
  }
  std::string text = fmt::format("Of {} rows: {}.", comparison.rows.size(), counts);
  if (comparison.is_one_run()) {
    return text;
  }
  const auto differences = differences_of(comparison.baseline, comparison.candidate);
  text += " Two runs at two times: hints, no verdicts.";
  return differences.empty() ? text : text + fmt::format(" They differ in {}.", fmt::join(differences, "; "));
}

std::string comparison_html(std::span<const RunComparison> comparisons, std::span<const std::string> drawings) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src "
      "'none'; style-src 'unsafe-inline'; img-src data:\">\n<title>decodelab: "
      "{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{0}</h1>\n<p class=\"soft\">decodelab comparison; time ratios are candidate over baseline, below "
      "1 is "
      "faster</p>\n</header>\n{2}<main>\n",
      escape_html(comparisons.size() == 1 ? title_of(comparisons.front())
                                          : fmt::format("{} comparisons", comparisons.size())),
      kPageStyle, navigation(comparisons));
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    html += comparison_section_html(comparisons[i], prefix_of(i, comparisons.size()), comparisons.size() > 1,
                                    i < drawings.size() ? drawings[i] : "");
  }
  return html +
         "</main>\n<footer>Every number of a cell carries the run and the cell of the store that it comes from "
         "(data-run, "
         "data-cell).</footer>\n</body>\n</html>\n";
}

std::string comparison_markdown(std::span<const RunComparison> comparisons) {
  std::string text = "# decodelab comparison\n\n";
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const RunComparison& comparison = comparisons[i];
    text += fmt::format(
        "## {}\n\n{}\n{}\n\n", escape_markdown(title_of(comparison)),
        wrap("**" + escape_markdown(answer_of(comparison.rows, comparison.is_one_run())) + "**", kTableWidth),
        wrap(escape_markdown(compared_sentence(comparison) + " " + outcome_sentence(comparison)), kTableWidth));
    for (const ComparedSection& section : sections_of(comparison)) {
      text += fmt::format("## {}\n\n", escape_markdown(section.title));
      for (const std::string& paragraph : section.paragraphs) {
        text += wrap(escape_markdown(paragraph), kTableWidth) + "\n\n";
      }
      if (section.figure) {
        text += fmt::format("![{}](figures/{}{}.svg)\n\n", escape_markdown(section.figure->title),
                            prefix_of(i, comparisons.size()), section.figure->name);
      }
      for (const Table& table : section.tables) {
        text += to_markdown(table) + "\n";
      }
    }
    text += "## Repeat it\n\n";
    std::istringstream lines(commands_of(comparison));
    for (std::string line; std::getline(lines, line);) {
      text += "    " + line + "\n";
    }
    text += "\n";
  }
  return text;
}

void write_comparison(std::span<const RunComparison> comparisons, const std::filesystem::path& out_dir,
                      std::ostream& warnings) {
  if (comparisons.empty()) {
    throw std::invalid_argument("A comparison needs two runs, or two arms of one; got none.");
  }
  const WorkFolder folder(out_dir);
  std::vector<std::string> names(comparisons.size());
  bool any = false;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const auto figure = comparison_figure(comparisons[i]);
    if (!figure) {
      continue;
    }
    names[i] = prefix_of(i, comparisons.size()) + figure->name;
    folder.write("figures/" + names[i] + ".vl.json", json_text(figure->spec, 1) + "\n");
    any = true;
  }
  if (any) {
    render_figures(folder.figures(), /*png=*/true, warnings);
  }
  std::vector<std::string> drawings;
  for (const std::string& name : names) {
    drawings.push_back(name.empty() ? "" : read_if_there(folder.figures() / (name + ".svg")).value_or(""));
  }
  folder.write("compare.html", comparison_html(comparisons, drawings));
  folder.write("compare.md", comparison_markdown(comparisons));
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const RunComparison& comparison : comparisons) {
    all.push_back(parse_ordered_json(comparison_to_json(comparison)));
  }
  folder.write("compare.json",
               json_text(all.size() == 1
                             ? all.front()
                             : nlohmann::ordered_json{{"schema_version", kReportSchemaVersion}, {"comparisons", all}},
                         2) +
                   "\n");
  folder.publish();
}

}  // namespace decodelab
