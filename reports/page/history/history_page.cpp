// Renders series of points.
#include "reports/page/history/history_page.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/files.h"
#include "base/text.h"
#include "base/units.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/render.h"
#include "reports/page/exports/json.h"
#include "reports/page/page_text.h"
#include "reports/page/work_folder.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostHistoryPanels = 12;  // for more series, the table says more
constexpr int kPanelWidth = 420;
constexpr int kHistoryPanelHeight = 150;
constexpr std::size_t kCommitDigits = 12;

bool is_time(const std::string& metric) { return metric.ends_with("_ns"); }
bool is_bytes(const std::string& metric) { return metric.ends_with("_bytes"); }

std::string value_text(double value, const std::string& metric) {
  if (is_time(metric)) {
    return format_time(value);
  }
  if (is_bytes(metric)) {
    return format_bytes(static_cast<std::int64_t>(value));
  }
  return metric == "bound_share" ? format_percent(value) : fmt::format("{:.4g}", value);
}

std::string change_text(const HistoryPoint& point) {
  return point.change ? fmt::format("{:+.2f} %", *point.change * 100) : "";
}

std::string step_text(const HistoryPoint& point) {
  if (point.step) {
    return point.change.value_or(1) > 0 ? "up" : "down";
  }
  return point.open ? "perhaps: one more point is needed" : "";
}

std::string series_name(const HistorySeries& series) {
  return fmt::format("{} of {}", cell_label(series.cell), series.arm);
}

std::vector<std::string> notes() {
  return {fmt::format(
              "A step: {} points or more in a row that lie {:g} block deviations or more from the level before them, "
              "which is the median since the last step. Counts have no deviation: any change that stays is a step.",
              kStepPoints, kStepDeviations),
          "Runs at different times: what the machine did between them is in the values. A series never mixes machines, "
          "models, "
          "types, devices or threads."};
}

Json json_of(const HistorySeries& series, const HistoryPoint& point, const std::string& metric) {
  return {{"arm", series.arm},
          {"phase", series.cell.phase},
          {"batch", series.cell.batch},
          {"length", series.cell.length},
          {"dtype", series.cell.dtype},
          {"device", series.cell.device},
          {"threads", series.cell.threads},
          {"machine", series.machine},
          {"model", series.model},
          {"run", point.run_id},
          {"run_name", point.run_name},
          {"commit", point.commit},
          {"started_unix_ns", point.started_unix_ns},
          {"metric", metric},
          {"value", point.value},
          {"deviation", point.deviation ? Json(*point.deviation) : Json(nullptr)},
          {"change", point.change ? Json(*point.change) : Json(nullptr)},
          {"step", point.step},
          {"open", point.open}};
}

std::vector<Json> records_of(const std::vector<HistorySeries>& series, const std::string& metric) {
  std::vector<Json> records;
  for (const HistorySeries& one : series) {
    for (const HistoryPoint& point : one.points) {
      records.push_back(json_of(one, point, metric));
    }
  }
  return records;
}

std::string html_of(const std::vector<HistorySeries>& series, const std::string& metric, std::string drawing) {
  for (const auto& [from, to] :
       {std::pair(kInkColor, "currentColor"), {kGridColor, "#80808038"}, {kPaperColor, "transparent"}}) {
    const std::string_view pattern = from;
    for (std::size_t at = 0; (at = drawing.find(pattern, at)) != std::string::npos;) {
      drawing.replace(at, pattern.size(), to);
    }
  }
  const Figure figure = history_figure(series, metric);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src "
      "'none'; style-src 'unsafe-inline'; img-src data:\">\n<title>decodelab: "
      "{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{0}</h1>\n</header>\n<main>\n",
      escape_html(fmt::format("History of {}", metric)), kPageStyle);
  if (series.empty()) {
    html += "<p>No finished run of the store has a value of it.</p>\n";
  }
  if (!series.empty()) {
    html += drawing.empty() ? "<p class=\"soft\">The figure was not drawn when this page was written.</p>\n"
                            : fmt::format(
                                  "<figure>\n<div class=\"drawing\" role=\"img\" aria-label=\"{}\">{}</div>\n"
                                  "<figcaption>{}</figcaption>\n</figure>\n",
                                  escape_html(figure.title), drawing, escape_html(figure.caption));
    html += to_html(history_overview_table(series, metric));
  }
  for (const HistorySeries& one : series) {
    html += to_html(history_table(one, metric));
  }
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace

Table history_overview_table(const std::vector<HistorySeries>& series, const std::string& metric) {
  Table table{
      .title = fmt::format("History of {}", metric),
      .columns =
          {{"Cell"}, {"Arm"}, {"Points", true}, {"First", true}, {"Last", true}, {"Steps", true}, {"Last step at"}},
      .rows = {},
      .notes = notes()};
  if (series.empty()) {
    table.notes.insert(table.notes.begin(), "No finished run of the store has a value of it.");
  }
  for (const HistorySeries& one : series) {
    std::string last_step;
    for (const HistoryPoint& point : one.points) {
      if (point.step) {
        last_step = fmt::format("{} ({})", one_line(point.commit, kCommitDigits), change_text(point));
      }
    }
    table.rows.push_back({0,
                          0,
                          {cell_label(one.cell), one.arm, std::to_string(one.points.size()),
                           value_text(one.points.front().value, metric), value_text(one.points.back().value, metric),
                           std::to_string(one.steps()), last_step}});
  }
  return table;
}

Table history_table(const HistorySeries& series, const std::string& metric) {
  Table table{.title = fmt::format("{} of {} on {} ({}, {})", metric, series_name(series), series.machine, series.model,
                                   setting_label(series.cell)),
              .columns = {{"Run"}, {"Commit"}, {"Date"}, {metric, true}, {"Change", true}, {"Step"}},
              .rows = {},
              .notes = {}};
  for (const HistoryPoint& point : series.points) {
    table.rows.push_back({point.run_id,
                          point.cell_id,
                          {point.run_name.empty() ? std::to_string(point.run_id)
                                                  : fmt::format("{} ({})", one_line(point.run_name), point.run_id),
                           one_line(point.commit, kCommitDigits), format_date(point.started_unix_ns),
                           value_text(point.value, metric), change_text(point), step_text(point)}});
  }
  table.notes = {series.threshold == 0
                     ? "Change: against the level before the point."
                     : fmt::format("Change: against the level before the point; beyond {} it may be a step.",
                                   format_percent(series.threshold))};
  return table;
}

Figure history_figure(const std::vector<HistorySeries>& series, const std::string& metric) {
  const double unit = is_time(metric) ? 1e6 : is_bytes(metric) ? 1024.0 * 1024.0 : 1;
  const std::string axis = is_time(metric)    ? metric.substr(0, metric.size() - 3) + " (ms)"
                           : is_bytes(metric) ? metric.substr(0, metric.size() - 6) + " (MiB)"
                                              : metric;
  Figure figure{.name = "history",
                .title = fmt::format("History of {}", metric),
                .caption =
                    "One panel for each cell and arm; every point is a run, in the order in which they were measured. "
                    "Diamonds are steps, crosses may become one.",
                .spec = start_spec(fmt::format("History of {}", metric)),
                .data = history_overview_table(series, metric)};
  Json panels = Json::array();
  for (std::size_t i = 0; i < std::min(series.size(), kMostHistoryPanels); ++i) {
    Json values = Json::array();
    Json order = Json::array();
    for (const HistoryPoint& point : series[i].points) {
      // Runs of one commit are points of their own.
      const std::string place = fmt::format("{} #{}", one_line(point.commit, kCommitDigits), point.run_id);
      order.push_back(place);
      values.push_back({{"place", place},
                        {"value", shortened(point.value / unit)},
                        {"kind", point.step   ? "step"
                                 : point.open ? "perhaps a step"
                                              : "point"}});
    }
    const Json x{{"field", "place"},
                 {"type", "ordinal"},
                 {"sort", order},
                 {"title", "commit and run"},
                 {"axis", {{"labelAngle", -40}, {"labelLimit", 110}}}};
    const Json y{
        {"field", "value"}, {"type", "quantitative"}, {"title", axis}, {"scale", {{"zero", false}, {"padding", 8}}}};
    const Json domain{"point", "step", "perhaps a step"};
    const Json shape{{"field", "kind"},
                     {"type", "nominal"},
                     {"title", nullptr},
                     {"scale", {{"domain", domain}, {"range", {"circle", "diamond", "cross"}}}}};
    const Json color{{"field", "kind"},
                     {"type", "nominal"},
                     {"title", nullptr},
                     {"scale", {{"domain", domain}, {"range", {"#0072b2", "#d55e00", "#7d868f"}}}}};
    const Json tooltip{
        {{"field", "place"}, {"title", "commit and run"}}, {{"field", "value"}, {"title", axis}}, {{"field", "kind"}}};
    panels.push_back(
        {{"title", series_name(series[i])},
         {"width", kPanelWidth},
         {"height", kHistoryPanelHeight},
         {"data", {{"values", std::move(values)}}},
         {"layer",
          {Json{{"mark", {{"type", "line"}, {"color", "#7d868f"}, {"strokeWidth", 1.2}}},
                {"encoding", {{"x", x}, {"y", y}}}},
           Json{{"mark", {{"type", "point"}, {"filled", true}, {"size", 70}, {"opacity", 1}}},
                {"encoding", {{"x", x}, {"y", y}, {"shape", shape}, {"color", color}, {"tooltip", tooltip}}}}}}});
  }
  figure.spec["columns"] = 2;
  figure.spec["concat"] = std::move(panels);
  if (series.size() > kMostHistoryPanels) {
    figure.caption += fmt::format(" {} of {} series are drawn.", kMostHistoryPanels, series.size());
  }
  return figure;
}

std::string history_to_json(const std::vector<HistorySeries>& series, const std::string& metric) {
  return json_text({{"schema_version", kReportSchemaVersion}, {"points", records_of(series, metric)}}, 2) + "\n";
}

std::string history_to_csv(const std::vector<HistorySeries>& series, const std::string& metric) {
  return objects_to_csv(json_of({}, {}, metric), records_of(series, metric));
}

void write_history(const std::vector<HistorySeries>& series, const std::string& metric,
                   const std::filesystem::path& out_dir, std::ostream& warnings) {
  const WorkFolder folder(out_dir);
  std::string drawing;
  std::string markdown = "# decodelab history\n\n" + to_markdown(history_overview_table(series, metric)) + "\n";
  if (!series.empty()) {
    folder.write("figures/history.vl.json", json_text(history_figure(series, metric).spec, 1) + "\n");
    render_figures(folder.figures(), /*png=*/true, warnings);
    drawing = read_if_there(folder.figures() / "history.svg").value_or("");
    markdown += "![History](figures/history.svg)\n\n";
  }
  for (const HistorySeries& one : series) {
    markdown += to_markdown(history_table(one, metric)) + "\n";
  }
  folder.write("history.html", html_of(series, metric, std::move(drawing)));
  folder.write("history.md", markdown);
  folder.write("history.json", history_to_json(series, metric));
  folder.write("history.csv", history_to_csv(series, metric));
  folder.publish();
}

}  // namespace decodelab
