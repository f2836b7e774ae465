// Where a traced step goes: stages as stacked bars, an arm a bar.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/curves.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/figures/traced_cells.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kStagesWidth = 760;
constexpr int kStagesBarHeight = 30;
constexpr std::size_t kStagesMostCells = 3;
constexpr double kSmallestNamed = 0.05;  // share of the longest bar that its name fits into
// Tol's "light" scheme (2021): told apart by colour-blind readers and light enough for dark names on them.
constexpr std::array<const char*, 9> kStageColors{"#77AADD", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00",
                                                  "#EEDD88", "#EE8866", "#FFAABB", "#D8B8E8"};
constexpr const char* kResidualColor = "#C4C8CC";

Json stage_color(const std::vector<std::string>& stages) {
  Json range = Json::array();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    range.push_back(stages[i] == kResidual ? kResidualColor : kStageColors[i % kStageColors.size()]);
  }
  return {{"field", "stage"},
          {"type", "nominal"},
          {"scale", {{"domain", stages}, {"range", range}}},
          {"legend",
           {{"title", nullptr},
            {"orient", "top"},
            {"columns", 6},
            {"symbolType", "square"},
            {"symbolSize", 120},
            {"symbolOpacity", 1},
            {"columnPadding", 18}}}};
}

// `longest` is the end of the axis, in units.
Json cell_view(const std::string& label, double longest, const Json& arms, const std::vector<std::string>& stages,
               const PhaseWords& words, bool first) {
  const std::string here = fmt::format("datum.label === {}", quoted(label));
  const Json y{{"field", "arm"},
               {"type", "nominal"},
               {"sort", arms},
               {"title", nullptr},
               {"axis",
                {{"tickSize", 0},
                 {"domain", false},
                 {"labelLimit", 240},
                 {"minExtent", 120},
                 {"maxExtent", 250},
                 {"labelPadding", 6}}}};
  const auto x = [&](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", fmt::format("{}, traced", words.unit)},
                {"scale", {{"domain", {0, shortened(longest)}}, {"nice", true}}},
                {"axis", {{"format", "~r"}, {"tickCount", 8}}}};
  };
  const Json tooltip{{{"field", "arm"}},
                     {{"field", "stage"}},
                     {{"field", "ms"}, {"title", words.unit}, {"format", ".4~r"}},
                     {{"field", "share"}, {"format", ".1%"}},
                     {{"field", "steps"}, {"title", "traced steps"}},
                     {{"field", "operators"}},
                     {{"field", "kernels"}}};
  Json bars =
      figure_layer("stages", here, {{"type", "bar"}, {"height", 19}, {"stroke", kPaperColor}, {"strokeWidth", 0.7}},
                   {{"x", x("from")},
                    {"x2", {{"field", "to"}}},
                    {"y", y},
                    {"color", stage_color(stages)},
                    {"opacity", shown_opacity()},
                    {"tooltip", tooltip}});
  if (first) {
    bars["name"] = "stages";
  }
  return {{"title", label},
          {"width", kStagesWidth},
          {"height", {{"step", kStagesBarHeight}}},
          {"layer",
           {bars,
            figure_layer("stages", here + " && datum.named",
                         {{"type", "text"}, {"fontSize", 10}, {"color", kDarkText}, {"limit", 120}},
                         {{"x", x("middle")}, {"y", y}, {"text", {{"field", "stage"}}}, {"opacity", shown_opacity()}}),
            figure_layer("totals", here + " && isValid(datum.untraced)",
                         {{"type", "tick"}, {"thickness", 2.5}, {"size", 25}, {"color", kInkColor}},
                         {{"x", x("untraced")},
                          {"y", y},
                          {"tooltip",
                           {{{"field", "arm"}},
                            {{"field", "untraced"}, {"title", "mean of untraced steps"}, {"format", ".4~r"}}}}})}}};
}

std::string perturbation(const TraceRecord& trace) {
  if (!(trace.perturbation > 0)) {
    return "not measured";
  }
  return format_ratio(trace.perturbation, Interval{trace.perturbation_low, trace.perturbation_high});
}

}  // namespace

bool has_traces(const FigureInput& input) { return !traced_cells(input, 1).empty(); }

Figure stages_figure(const FigureInput& input) {
  const auto cells = traced_cells(input, kStagesMostCells);
  const auto order = stage_order(cells);
  const PhaseWords& words = words_of(input.rows.rows.front()->cell.phase);
  Json bars = Json::array();
  Json totals = Json::array();
  Json views = Json::array();
  Table table{.title = "Data of the figure: one traced step",
              .columns = {{"Cell"}, {"Arm"}, {"Stage"}, {"Time", true}, {"Share", true}, {"Traced / untraced", true}},
              .rows = {},
              .notes = {}};
  double longest = 0;
  for (const TracedCell& cell : cells) {
    for (const TracedArm& arm : cell.arms) {
      longest = std::max(longest, static_cast<double>(arm.trace->steps_ns) / static_cast<double>(arm.trace->steps));
    }
  }
  const bool of_device =
      std::ranges::any_of(cells, [](const TracedCell& cell) { return is_of_device(*cell.arms.front().trace); });
  double axis_ns = longest;
  for (const TracedCell& cell : cells) {
    for (const TracedArm& arm : cell.arms) {
      axis_ns = std::max(axis_ns, arm.row->cell_mean_ns.value_or(0));
    }
  }
  for (const TracedCell& cell : cells) {
    const std::string label = cell_label(cell.cell);
    Json arms = Json::array();
    for (const auto& [row, trace] : cell.arms) {
      arms.push_back(row->arm.label);
      const double step_ns = static_cast<double>(trace->steps_ns) / static_cast<double>(trace->steps);
      const auto stages = stages_of(*trace);
      double at = 0;
      for (const std::string& name : order) {
        const auto stage = std::ranges::find(stages, name, &std::pair<std::string, double>::first);
        if (stage == stages.end() || stage->second == 0) {
          continue;
        }
        const double ns = stage->second;
        Json datum{{"label", label},
                   {"arm", row->arm.label},
                   {"stage", name},
                   {"from", shortened(at / words.unit_ns)},
                   {"to", shortened((at + ns) / words.unit_ns)},
                   {"middle", shortened((at + ns / 2) / words.unit_ns)},
                   {"ms", shortened(ns / words.unit_ns)},
                   {"share", shortened(ns / step_ns)},
                   {"steps", trace->steps},
                   {"named", ns > kSmallestNamed * longest}};
        const auto share = std::ranges::find_if(
            trace->shares, [&](const TraceShareRecord& known) { return known.kind == "stage" && known.name == name; });
        if (share != trace->shares.end()) {
          datum["operators"] = shortened(static_cast<double>(share->operators) / static_cast<double>(trace->steps));
          datum["kernels"] = shortened(static_cast<double>(share->kernels) / static_cast<double>(trace->steps));
        }
        bars.push_back(std::move(datum));
        at += ns;
        table.rows.push_back(
            {row->run_id,
             row->cell.id,
             {label, row->arm.label, name, format_time(ns), format_percent(ns / step_ns), perturbation(*trace)}});
      }
      Json total{{"label", label}, {"arm", row->arm.label}};
      if (row->cell_mean_ns) {
        total["untraced"] = shortened(*row->cell_mean_ns / words.unit_ns);
      }
      totals.push_back(std::move(total));
    }
    views.push_back(cell_view(label, axis_ns / words.unit_ns, arms, order, words, views.empty()));
  }
  const std::string title = fmt::format("Stages of a step: {}", input.rows.setting);
  Figure figure{.title = title,
                .caption = fmt::format(
                    "{} of a traced step by stage; the residual is in none. The bar is the traced step, which tracing "
                    "lengthens; the tick is the mean of the untraced steps of the same cell. "
                    "{} Where JavaScript runs, a click in the legend shows one stage alone.",
                    of_device ? "Device time, busy and idle," : "Host time",
                    cells.size() == kStagesMostCells
                        ? fmt::format("The {} largest of the cells with most traced arms.", kStagesMostCells)
                        : ""),
                .spec = start_spec(title),
                .data = std::move(table)};
  add_legend_toggle(figure.spec, "stage", "stages");
  figure.spec["datasets"] = {{"stages", bars}, {"totals", totals}};
  figure.spec["vconcat"] = views;
  figure.spec["bounds"] = "flush";
  figure.spec["spacing"] = 62;
  return figure;
}

}  // namespace decodelab
