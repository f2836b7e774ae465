// From the baseline's traced step to an arm's: steps that add up to the difference, with the residual as its own.
#include <algorithm>
#include <cmath>

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

constexpr int kWaterfallHeight = 210;
constexpr int kColumnWidth = 62;
constexpr std::size_t kWaterfallMostArms = 4;
constexpr const char* kTotalColor = "#808890";

std::vector<TracedCell> candidates(const FigureInput& input) { return traced_cells(input, input.rows.rows.size()); }

const TracedArm* baseline_of(const TracedCell& cell) {
  const auto found = std::ranges::find_if(cell.arms, [](const TracedArm& arm) { return arm.row->arm.baseline; });
  return found == cell.arms.end() || cell.arms.size() < 2 ? nullptr : &*found;
}

double ns_of(const std::vector<std::pair<std::string, double>>& stages, const std::string& name) {
  double ns = 0;
  for (const auto& [stage, value] : stages) {
    ns += stage == name ? value : 0;
  }
  return ns;
}

double step_ns(const TracedArm& arm) {
  return static_cast<double>(arm.trace->steps_ns) / static_cast<double>(arm.trace->steps);
}

Json waterfall_view(const std::string& arm, const Json& columns, const PhaseWords& words) {
  const std::string here = fmt::format("datum.arm === {}", quoted(arm));
  const Json x{
      {"field", "column"},
      {"type", "ordinal"},
      {"sort", columns},
      {"title", nullptr},
      {"axis", {{"labelAngle", -28}, {"tickSize", 0}, {"domain", false}, {"labelLimit", 120}, {"labelPadding", 6}}}};
  const auto y = [&](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", fmt::format("{}, traced", words.unit)},
                {"scale", {{"zero", true}, {"nice", true}}},
                {"axis", {{"format", "~r"}, {"tickCount", 6}}}};
  };
  const Json color{{"condition",
                    {{{"test", "datum.total"}, {"value", kTotalColor}},
                     {{"test", "datum.to < datum.from"}, {"value", kFasterColor}}}},
                   {"value", kSlowerColor}};
  const Json tooltip{{{"field", "column"}, {"title", "stage"}},
                     {{"field", "change"}, {"title", words.unit}, {"format", "+.4~r"}},
                     {{"field", "before"}, {"title", "baseline"}, {"format", ".4~r"}},
                     {{"field", "after"}, {"title", "arm"}, {"format", ".4~r"}}};
  return {
      {"title", {{"text", arm}, {"limit", 620}}},
      {"width", {{"step", kColumnWidth}}},
      {"height", kWaterfallHeight},
      {"layer",
       {figure_layer("steps", here, {{"type", "bar"}, {"width", 40}},
                     {{"x", x}, {"y", y("from")}, {"y2", {{"field", "to"}}}, {"color", color}, {"tooltip", tooltip}}),
        figure_layer("steps", here, {{"type", "text"}, {"dy", -7}, {"fontSize", 10.5}, {"color", kInkColor}},
                     {{"x", x}, {"y", y("top")}, {"text", {{"field", "text"}}}})}}};
}

}  // namespace

bool has_traced_pairs(const FigureInput& input) {
  return std::ranges::any_of(candidates(input), [](const TracedCell& cell) { return baseline_of(cell) != nullptr; });
}

Figure waterfall_figure(const FigureInput& input) {
  const auto cells = candidates(input);
  const auto cell = std::ranges::find_if(cells, [](const TracedCell& known) { return baseline_of(known) != nullptr; });
  const TracedArm& baseline = *baseline_of(*cell);
  const auto order = stage_order({*cell});
  const PhaseWords& words = words_of(cell->cell.phase);
  Json steps = Json::array();
  Json views = Json::array();
  Table table{.title = "Data of the figure: change of a traced step",
              .columns = {{"Arm"}, {"Stage"}, {"Baseline", true}, {"Arm's", true}, {"Change", true}},
              .rows = {},
              .notes = {}};
  const auto before = stages_of(*baseline.trace);
  for (const TracedArm& arm : cell->arms) {
    if (arm.row->arm.baseline || views.size() == kWaterfallMostArms) {
      continue;
    }
    const std::string& label = arm.row->arm.label;
    const auto after = stages_of(*arm.trace);
    Json columns{input.summary.baseline()};
    const auto bar = [&](const std::string& column, double from, double to, bool total) -> Json& {
      steps.push_back({{"arm", label},
                       {"column", column},
                       {"from", shortened(from / words.unit_ns)},
                       {"to", shortened(to / words.unit_ns)},
                       {"top", shortened(std::max(from, to) / words.unit_ns)},
                       {"total", total},
                       {"text", total ? fmt::format("{:.4g}", to / words.unit_ns)
                                      : fmt::format("{:+.3g}", (to - from) / words.unit_ns)}});
      return steps.back();
    };
    bar(columns[0], 0, step_ns(baseline), true);
    double at = step_ns(baseline);
    for (const std::string& name : order) {
      const double old_ns = ns_of(before, name);
      const double new_ns = ns_of(after, name);
      const double change = new_ns - old_ns;
      table.rows.push_back({arm.row->run_id,
                            cell->cell.id,
                            {label, name, format_time(old_ns), format_time(new_ns),
                             fmt::format("{}{}", change < 0 ? "-" : "+", format_time(std::abs(change)))}});
      if (change == 0) {
        continue;
      }
      columns.push_back(name);
      Json& datum = bar(name, at, at + change, false);
      datum["change"] = shortened(change / words.unit_ns);
      datum["before"] = shortened(old_ns / words.unit_ns);
      datum["after"] = shortened(new_ns / words.unit_ns);
      at += change;
    }
    columns.push_back(label);
    bar(label, 0, step_ns(arm), true);
    table.rows.push_back({arm.row->run_id,
                          cell->cell.id,
                          {label, "all", format_time(step_ns(baseline)), format_time(step_ns(arm)),
                           fmt::format("{}{}", step_ns(arm) < step_ns(baseline) ? "-" : "+",
                                       format_time(std::abs(step_ns(arm) - step_ns(baseline))))}});
    views.push_back(waterfall_view(label, columns, words));
  }
  const std::string title =
      fmt::format("Where the difference went in {}: {}", cell_label(cell->cell), input.rows.setting);
  Figure figure{
      .title = title,
      .caption = fmt::format(
          "From the traced step of {} to that of each arm: the change of every stage, in the order of a "
          "step, with the residual (time in no stage) as its own. The bars add up to the "
          "difference of the two grey ones. Both sides are traced; the paired ratios above are not.{}",
          input.summary.baseline(),
          views.size() == kWaterfallMostArms ? fmt::format(" The first {} traced arms.", kWaterfallMostArms) : ""),
      .spec = start_spec(title),
      .data = std::move(table)};
  figure.spec["datasets"] = {{"steps", steps}};
  figure.spec["vconcat"] = views;
  figure.spec["spacing"] = 26;
  return figure;
}

}  // namespace decodelab
