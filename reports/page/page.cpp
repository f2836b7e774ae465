// Puts the page together.
#include "reports/page/page.h"

#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "reports/figures/vega_bundle.h"
#include "reports/page/page_text.h"
#include "reports/page/sections/section.h"
#include "reports/page/tables/overview.h"
#include "reports/page/tables/result_tables.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostPageBytes = 2'500'000;  // the most that an e-mail and a phone take

std::string banner(const RunReport& run) {
  const Overview overview = overview_of(*run.data, run.summary);
  std::string html =
      fmt::format("<div class=\"banner\" data-run=\"{}\">\n<p><b>{}</b></p>\n<p>{} {}</p>\n<div class=\"badges\">",
                  run.summary.run.id, escape_html(overview.answer), escape_html(overview.compared),
                  escape_html(overview.resolution));
  for (const std::string& badge : overview.badges) {
    html += fmt::format("<span class=\"badge\">{}</span>", escape_html(badge));
  }
  return html + "</div>\n</div>\n";
}

// What belongs to one run, and the links to its sections.
struct RunPart {
  std::string html;
  std::string links;
};

RunPart run_part(const RunReport& run, const std::map<std::string, std::string>& drawings, bool several,
                 Detail detail) {
  const std::string title = escape_html(run_title(run.summary.run));
  RunPart part;
  if (several) {
    part.html = fmt::format("<h2 id=\"{}run\">{}</h2>\n", run.prefix, title);
    part.links = fmt::format("<b>{}</b>&ensp;", title);
  }
  part.html += banner(run);
  for (const Table& table : {overview_table(run.summary), composite_table(run.summary), effect_table(run.summary)}) {
    if (!table.rows.empty()) {
      part.html += to_html(table);
    }
  }
  for (const Section& section : sections()) {
    const std::string html = section.html({.run = run, .drawings = drawings, .detail = detail});
    if (html.empty()) {
      continue;
    }
    part.html += fmt::format("<h2 id=\"{}{}\">{}</h2>\n{}", run.prefix, section.id, section.title, html);
    part.links += fmt::format("<a href=\"#{}{}\">{}</a>", run.prefix, section.id, section.link);
  }
  return part;
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

std::string navigation(const std::vector<RunPart>& parts) {
  std::string html = "<nav>";
  for (const RunPart& part : parts) {
    html += part.links;
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
  std::vector<RunPart> parts;
  for (const RunReport& run : runs) {
    parts.push_back(run_part(run, drawings, runs.size() > 1, detail));
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
      escape_html(titles), kPageStyle, format_date(runs.front().summary.run.started_unix_ns), navigation(parts));
  for (const RunPart& part : parts) {
    html += part.html;
  }
  html += fmt::format("<h2 id=\"environment\">Environment</h2>\n{}", to_html(environment_table(records)));
  if (const Table one_sided = one_sided_table(summaries); !one_sided.rows.empty()) {
    html += to_html(one_sided);
  }
  html += fmt::format(
      "<h2 id=\"method\">How time was taken</h2>\n{}<h2 id=\"glossary\">Glossary</h2>\n{}<h2 id=\"repeat\">Repeat "
      "it</h2>\n{}",
      kHowTimeWasTaken, kGlossary, reproduce_html(runs));
  html +=
      "</main>\n<footer>Every number carries the run and the cell of the store that it comes from (data-run, "
      "data-cell).</footer>\n";
  if (const std::string_view bundle = vega_bundle(); !bundle.empty()) {
    html +=
        fmt::format("<script type=\"text/plain\" id=\"vega\">{}</script>\n<script>{}</script>\n", bundle, kPageScript);
  }
  return html + "</body>\n</html>\n";
}

}  // namespace

std::string page_html(std::span<const RunReport> runs, const std::map<std::string, std::string>& drawings) {
  std::string html = assemble(runs, drawings, Detail::full);
  return html.size() <= kMostPageBytes ? html : assemble(runs, drawings, Detail::compact);
}

}  // namespace decodelab
