// Writes all files of a report into a temporary folder, then moves them into place.
#include "reports/page/report.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/files.h"
#include "base/text.h"
#include "reports/figures/render.h"
#include "reports/page/exports/json.h"
#include "reports/page/exports/trace_data.h"
#include "reports/page/page.h"
#include "reports/page/tables/batching_table.h"
#include "reports/page/tables/completions_table.h"
#include "reports/page/tables/overview.h"
#include "reports/page/tables/prediction_table.h"
#include "reports/page/tables/result_tables.h"
#include "reports/page/tables/tgi_table.h"
#include "reports/page/work_folder.h"

namespace decodelab {
namespace {

constexpr std::pair<const char*, ReportFormat> kFormats[] = {
    {"html", ReportFormat::html}, {"md", ReportFormat::markdown}, {"json", ReportFormat::json},
    {"csv", ReportFormat::csv},   {"svg", ReportFormat::svg},     {"png", ReportFormat::png}};

std::vector<RunReport> reports_of(std::span<const RunData> runs, bool smooth = false) {
  std::vector<RunReport> reports;
  for (const RunData& data : runs) {
    RunReport report{.data = &data,
                     .summary = summarize(data),
                     .figures = {},
                     .prefix = runs.size() == 1 ? "" : fmt::format("r{}-", reports.size() + 1)};
    report.figures = figures_of(report.summary, data, smooth);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string markdown_of(const std::vector<RunReport>& reports) {
  std::string text = "# decodelab report\n\n";
  std::vector<const RunRecord*> records;
  for (const RunReport& run : reports) {
    const Overview overview = overview_of(*run.data, run.summary);
    records.push_back(&run.summary.run);
    text += fmt::format("## {}\n\n{}\n{}\n\n", escape_markdown(run_title(run.summary.run)),
                        wrap("**" + escape_markdown(overview.answer) + "**", kTableWidth),
                        wrap(escape_markdown(overview.compared + " " + overview.resolution), kTableWidth));
    for (const std::string& badge : overview.badges) {
      text += fmt::format("- {}\n", escape_markdown(badge));
    }
    text += "\n";
    if (const Table table = overview_table(run.summary); !table.rows.empty()) {
      text += to_markdown(table) + "\n";
    }
    if (const Table table = composite_table(run.summary); !table.rows.empty()) {
      text += to_markdown(table) + "\n";
    }
    if (const Table table = effect_table(run.summary); !table.rows.empty()) {
      text += to_markdown(table) + "\n";
    }
    for (const Table& table : comparison_tables(run.summary)) {
      text += to_markdown(table) + "\n";
    }
    for (const Figure& figure : run.figures) {
      text += fmt::format("![{}](figures/{}{}.svg)\n\n{}\n\n", escape_markdown(figure.title), run.prefix, figure.name,
                          wrap(escape_markdown(figure.caption), kTableWidth));
    }
    if (const Table table = completions_table(*run.data); !table.rows.empty()) {
      text += to_markdown(table) + "\n";
    }
    if (const Table table = batching_table(run.summary); !table.rows.empty()) {
      text += to_markdown(table) + "\n";
    }
    if (const Table table = prediction_table(run.summary); !table.rows.empty()) {
      text += to_markdown(table) + "\n";
    }
    for (const Table& table : tgi_tables(run.summary)) {
      text += to_markdown(table) + "\n";
    }
    text += to_markdown(ledger_table(run.summary)) + "\n";
  }
  text += to_markdown(environment_table(records)) + "\n## Repeat it\n\n";
  // Indented, not fenced: a command may have backticks in it.
  for (const RunReport& run : reports) {
    std::istringstream lines(run.summary.run.command);
    for (std::string line; std::getline(lines, line);) {
      text += "    " + line + "\n";
    }
  }
  return text;
}

nlohmann::ordered_json json_of(const RunReport& report) {
  nlohmann::ordered_json run = summary_to_json(report.summary);
  run["completions"] = completions_to_json(*report.data);
  return run;
}

std::string json_of(const std::vector<RunReport>& reports) {
  if (reports.size() == 1) {
    return json_text(json_of(reports.front()), 2) + "\n";
  }
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const RunReport& run : reports) {
    runs.push_back(json_of(run));
  }
  const nlohmann::ordered_json all{{"schema_version", kReportSchemaVersion}, {"runs", std::move(runs)}};
  return json_text(all, 2) + "\n";
}

// Joins the texts of all runs, with the header of the first only.
std::string joined_csv(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += all.empty() ? text : text.substr(text.find('\n') + 1);
  }
  return all;
}

void write_csv(const std::vector<RunReport>& reports, const WorkFolder& folder) {
  std::vector<std::string> cells;
  std::vector<std::string> blocks;
  std::vector<std::string> traces;
  bool traced = false;
  for (const RunReport& run : reports) {
    cells.push_back(to_csv(run.summary));
    blocks.push_back(blocks_to_csv(*run.data));
    traces.push_back(traces_to_csv(*run.data));
    traced = traced || !run.data->traces.empty();
  }
  folder.write("cells.csv", joined_csv(cells));
  folder.write("blocks.csv", joined_csv(blocks));
  if (traced) {
    folder.write("traces.csv", joined_csv(traces));
  }
}

std::map<std::string, std::string> drawings_in(const std::filesystem::path& folder,
                                               const std::vector<RunReport>& reports) {
  std::map<std::string, std::string> drawings;
  for (const RunReport& run : reports) {
    for (const Figure& figure : run.figures) {
      if (std::optional<std::string> svg = read_if_there(folder / (run.prefix + figure.name + ".svg"))) {
        drawings.emplace(run.prefix + figure.name, *std::move(svg));
      }
    }
  }
  return drawings;
}

}  // namespace

std::string to_markdown(std::span<const RunData> runs) { return markdown_of(reports_of(runs)); }

std::string report_format_names() {
  std::string names;
  for (const auto& [name, format] : kFormats) {
    names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names;
}

std::set<ReportFormat> parse_report_formats(std::string_view names) {
  std::set<ReportFormat> formats;
  while (true) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const auto* const known = std::ranges::find(kFormats, name, &std::pair<const char*, ReportFormat>::first);
    if (known == std::end(kFormats)) {
      throw std::invalid_argument(
          fmt::format("--format '{}': expected one or more of {}", name, report_format_names()));
    }
    formats.insert(known->second);
    if (comma == std::string_view::npos) {
      return formats;
    }
    names.remove_prefix(comma + 1);
  }
}

void write_report(std::span<const RunData> runs, const std::filesystem::path& out_dir, std::ostream& warnings,
                  const std::set<ReportFormat>& formats, bool smooth) {
  if (runs.empty()) {
    throw std::invalid_argument(
        "A report needs at least one run, got none. Name one: decodelab report latest --out DIR.");
  }
  const std::vector<RunReport> reports = reports_of(runs, smooth);
  const WorkFolder folder(out_dir);
  const auto wanted = [&](ReportFormat format) { return formats.contains(format); };
  if (wanted(ReportFormat::html) || wanted(ReportFormat::svg) || wanted(ReportFormat::png)) {
    for (const RunReport& run : reports) {
      for (const Figure& figure : run.figures) {
        folder.write("figures/" + run.prefix + figure.name + ".vl.json", json_text(figure.spec, 1) + "\n");
      }
    }
    render_figures(folder.figures(), wanted(ReportFormat::png), warnings);
  }
  if (wanted(ReportFormat::json)) {
    folder.write("report.json", json_of(reports));
  }
  if (wanted(ReportFormat::markdown)) {
    folder.write("report.md", markdown_of(reports));
  }
  if (wanted(ReportFormat::csv)) {
    write_csv(reports, folder);
  }
  if (wanted(ReportFormat::html)) {
    folder.write("report.html", page_html(reports, drawings_in(folder.figures(), reports)));
  }
  // The page holds its figures itself; the files beside it belong to the formats svg and png.
  const bool any_drawing = wanted(ReportFormat::svg) || wanted(ReportFormat::png);
  if (!any_drawing) {
    folder.drop(".vl.json");
  }
  if (!wanted(ReportFormat::svg)) {
    folder.drop(".svg");
  }
  if (!wanted(ReportFormat::png)) {
    folder.drop(".png");
  }
  folder.publish();
}

void write_report(const RunData& run, const std::filesystem::path& out_dir, std::ostream& warnings) {
  write_report(std::span(&run, 1), out_dir, warnings);
}

}  // namespace decodelab
