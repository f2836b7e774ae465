// Puts the page together.
#include "reports/page/page.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/figures/figure_style.h"
#include "reports/figures/vega_bundle.h"
#include "reports/page/format.h"
#include "reports/page/overview.h"
#include "reports/page/page_text.h"
#include "reports/page/result_tables.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostPageBytes = 2'500'000;    // what a mail and a phone take
constexpr const char* kPageGridColor = "#80808038";  // visible on light and on dark

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Very large runs leave out what stands elsewhere on the page, or in the files beside it.
enum class Detail { full, compact };

// Ink takes the colour of the text around it, and the paper shows through.
std::string in_page_colors(std::string text) {
  text = replace_all(std::move(text), kInkColor, "currentColor");
  text = replace_all(std::move(text), kGridColor, kPageGridColor);
  return replace_all(std::move(text), kPaperColor, "transparent");
}

std::string folded(const std::string& summary, const std::string& body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_html(summary), body);
}

std::string banner(const RunReport& run) {
  const Overview overview = overview_of(*run.data, run.summary);
  std::string html =
      fmt::format("<div class=\"banner\" data-run=\"{}\">\n<p><b>{}</b></p>\n<p>{}</p>\n<div class=\"badges\">",
                  run.summary.run.id, escape_html(overview.compared), escape_html(overview.resolution));
  for (const std::string& badge : overview.badges)
    html += fmt::format("<span class=\"badge\">{}</span>", escape_html(badge));
  return html + "</div>\n</div>\n";
}

std::string figure_html(const std::string& name, const Figure& figure,
                        const std::map<std::string, std::string>& drawings, Detail detail) {
  const auto drawing = drawings.find(name);
  const std::string still = drawing == drawings.end() ? "<p class=\"soft\">This figure was not drawn when the report "
                                                        "was written; it appears where JavaScript runs.</p>"
                                                      : in_page_colors(drawing->second);
  const std::string spec = figure.spec.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return fmt::format(
      "<figure id=\"{0}\">\n<h3>{1}</h3>\n<div class=\"drawing\" data-figure=\"{0}\" role=\"img\" "
      "aria-label=\"{1}\">{2}</div>\n<figcaption>{3}</figcaption>\n{4}"
      "<script type=\"application/json\" id=\"spec-{0}\">{5}</script>\n</figure>\n",
      escape_html(name), escape_html(figure.title), still, escape_html(figure.caption),
      detail == Detail::full ? folded("Data of this figure", to_html(figure.data))
                             : "<p class=\"soft\">Its data: the tables below, and cells.csv.</p>\n",
      escape_script(in_page_colors(spec)));
}

std::string figures_html(const RunReport& run, const std::map<std::string, std::string>& drawings, Detail detail) {
  if (run.figures.empty()) return "<p>Nothing was measured, so there is nothing to draw.</p>\n";
  std::string html;
  for (const Figure& figure : run.figures) html += figure_html(run.prefix + figure.name, figure, drawings, detail);
  return html;
}

std::string tables_html(const RunReport& run) {
  std::string html;
  for (const Table& table : comparison_tables(run.summary, ArmLabels::full)) html += to_html(table);
  std::string times;
  for (const Table& table : latency_tables(run.summary)) times += to_html(table);
  return html + folded("Times per arm and length: average, lowest, highest, percentiles", times);
}

std::string signed_share(const std::optional<LaunchEffect>& effect) {
  return effect ? fmt::format("{:+.2f} %", effect->mean * 100) : "";
}

std::string trust_html(const RunReport& run, Detail detail) {
  std::string html = to_html(ledger_table(run.summary));
  Table nulls{.title = "In-run null, order and blocks",
              .columns = {{"Cell"},
                          {"Arm"},
                          {"Blocks", true},
                          {"Skipped", true},
                          {"Warm-up steps", true},
                          {"In-run null [95 %]", true},
                          {"A place", true},
                          {"Another before", true},
                          {"Flags"}},
              .rows = {},
              .notes = {}};
  for (const SummaryRow& row : run.summary.rows) {
    const auto& null = row.comparison.in_run_null;
    const bool remarkable =
        !row.flags.empty() || row.comparison.skipped_blocks > 0 || (null && (null->low > 0 || null->high < 0));
    if (row.blocks == 0 || (detail == Detail::compact && !remarkable)) continue;
    std::string flags;
    for (const std::string& flag : row.flags) flags += (flags.empty() ? "" : ", ") + flag;
    nulls.rows.push_back({row.run_id,
                          row.cell.id,
                          {cell_label(row.cell), row.arm.label, std::to_string(row.blocks),
                           std::to_string(row.comparison.skipped_blocks), std::to_string(row.warmup),
                           null ? fmt::format("{:+.2f} % to {:+.2f} %", null->low * 100, null->high * 100) : "",
                           signed_share(row.slot), signed_share(row.carry_over), flags}});
  }
  nulls.notes = {
      "The in-run null spans 0 in about 95 % of the rows when nothing drifts within blocks. It is no A/A test: effects "
      "of a launch do not show in it.",
      "A place: what it adds to a visit to come one place later in its block (drift, heat). Another before: what it "
      "adds "
      "to follow another arm instead of itself (caches, clocks); flagged carry-over beyond a third of the gate's "
      "margin."};
  if (detail == Detail::compact)
    nulls.notes.emplace_back(
        "Only rows with a flag, a skipped block or a null that does not span 0 are listed here; blocks.csv has all "
        "visits.");
  return html + folded(detail == Detail::full ? "In-run null, warm-up and flags of every row"
                                              : "In-run null, warm-up and flags where they are remarkable",
                       to_html(nulls));
}

std::string run_html(const RunReport& run, const std::map<std::string, std::string>& drawings, bool several,
                     Detail detail) {
  const std::string anchor = run.prefix;
  std::string html = several
                         ? fmt::format("<h2 id=\"{}run\">{}</h2>\n", anchor, escape_html(run_title(run.summary.run)))
                         : std::string();
  html += banner(run);
  if (const Table overview = overview_table(run.summary); !overview.rows.empty()) html += to_html(overview);
  if (const Table composite = composite_table(run.summary); !composite.rows.empty()) html += to_html(composite);
  if (const Table effects = effect_table(run.summary); !effects.rows.empty()) html += to_html(effects);
  html += fmt::format("<h2 id=\"{0}figures\">Curves and ratios</h2>\n{1}", anchor, figures_html(run, drawings, detail));
  html += fmt::format("<h2 id=\"{0}tables\">Tables</h2>\n{1}", anchor, tables_html(run));
  html += fmt::format("<h2 id=\"{0}trust\">Trust</h2>\n{1}", anchor, trust_html(run, detail));
  return html;
}

std::string reproduce_html(std::span<const RunReport> runs) {
  std::string commands;
  std::string selectors;
  for (const RunReport& run : runs) {
    commands += run.summary.run.command + "\n";
    selectors += fmt::format(" {}", run.summary.run.id);
  }
  return fmt::format(
      "<p>These commands measure again and write this page; the seed is {}.</p>\n<pre>{}decodelab report{} --out "
      "decodelab-report</pre>\n",
      runs.front().summary.run.seed, escape_html(commands), escape_html(selectors));
}

std::string navigation(std::span<const RunReport> runs) {
  std::string html = "<nav>";
  for (const RunReport& run : runs) {
    if (runs.size() > 1) html += fmt::format("<b>{}</b>&ensp;", escape_html(run_title(run.summary.run)));
    for (const char* section : {"figures", "tables", "trust"})
      html += fmt::format("<a href=\"#{}{}\">{}</a>", escape_html(run.prefix), section, section);
  }
  return html +
         "<a href=\"#environment\">environment</a><a href=\"#method\">how time was taken</a><a "
         "href=\"#glossary\">glossary</a><a href=\"#repeat\">repeat</a></nav>\n";
}

std::string assemble(std::span<const RunReport> runs, const std::map<std::string, std::string>& drawings,
                     Detail detail) {
  std::string titles;
  std::vector<const RunRecord*> records;
  std::vector<const RunSummary*> summaries;
  for (const RunReport& run : runs) {
    titles += (titles.empty() ? "" : ", ") + run_title(run.summary.run);
    records.push_back(&run.summary.run);
    summaries.push_back(&run.summary);
  }
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline' 'unsafe-eval'; img-src data:\">\n"
      "<title>decodelab: {0}</title>\n<style>{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n<p "
      "class=\"soft\">decodelab report, measured {2}</p>\n</header>\n{3}<main>\n",
      escape_html(titles), kPageStyle, format_date(runs.front().summary.run.started_unix_ns), navigation(runs));
  for (const RunReport& run : runs) html += run_html(run, drawings, runs.size() > 1, detail);
  html += fmt::format("<h2 id=\"environment\">Environment</h2>\n{}", to_html(environment_table(records)));
  if (const Table one_sided = one_sided_table(summaries); !one_sided.rows.empty()) html += to_html(one_sided);
  html += fmt::format(
      "<h2 id=\"method\">How time was taken</h2>\n{}<h2 id=\"glossary\">Glossary</h2>\n{}<h2 id=\"repeat\">Repeat "
      "it</h2>\n{}",
      kHowTimeWasTaken, kGlossary, reproduce_html(runs));
  html +=
      "</main>\n<footer>Every number carries the run and the cell of the store that it comes from (data-run, "
      "data-cell).</footer>\n";
  if (const std::string_view bundle = vega_bundle(); !bundle.empty())
    html +=
        fmt::format("<script type=\"text/plain\" id=\"vega\">{}</script>\n<script>{}</script>\n", bundle, kPageScript);
  return html + "</body>\n</html>\n";
}

}  // namespace

std::string page_html(std::span<const RunReport> runs, const std::map<std::string, std::string>& drawings) {
  std::string html = assemble(runs, drawings, Detail::full);
  return html.size() <= kMostPageBytes ? html : assemble(runs, drawings, Detail::compact);
}

}  // namespace decodelab
