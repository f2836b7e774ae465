// What each switch does: a bar per switch that was added or left out, and the way from the baseline along presets.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/figures/effects.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kAblationWidth = 560;
constexpr int kAblationBarHeight = 24;
constexpr std::size_t kFewestPresets = 3;  // two are a single contrast
constexpr double kAblationFrame = 2;       // intervals end at this factor beyond the extreme bars

/// A bar from `from` to `to`, as time over that of what it is compared with.
struct Bar {
  std::string label;
  std::string arm;
  double from = 1;
  double to = 1;
  RatioEstimate step;               // what the bar itself is: to over from
  std::optional<double> predicted;  // by the product of single switches
  std::string note;
};

// Arms with one switch or more on an arm that the run has too.
std::vector<Bar> switch_bars(const FigureInput& input, const ArmEffects& effects) {
  std::vector<Bar> bars;
  for (const ArmRecord& arm : input.arms) {
    const ArmParts parts = arm_parts(arm.label);
    const auto own = effects.logs.find(arm.label);
    const auto base = effects.logs.find(parts.base);
    if (parts.switches.empty() || own == effects.logs.end() || base == effects.logs.end()) {
      continue;
    }
    const LaunchLogs logs = difference(own->second, base->second);
    const auto estimate = ratio_of(logs);
    if (!estimate) {
      continue;
    }
    Bar bar{.label = fmt::format("{} {}", parts.base, fmt::join(parts.switches, " ")),
            .arm = arm.label,
            .from = 1,
            .to = estimate->time_ratio,
            .step = *estimate,
            .predicted = {},
            .note = {}};
    if (parts.switches.size() > 1) {
      // The product of the single switches, launch by launch, so that its difference from the truth has an interval.
      LaunchLogs unexplained = logs;
      double product = 0;
      bool complete = true;
      for (const std::string& part : parts.switches) {
        const auto single = effects.logs.find(parts.base + "," + part);
        const auto alone =
            single == effects.logs.end() ? std::nullopt : ratio_of(difference(single->second, base->second));
        complete = complete && alone.has_value();
        if (!alone) {
          break;
        }
        product += std::log(alone->time_ratio);
        unexplained = difference(unexplained, difference(single->second, base->second));
      }
      if (const auto interaction = ratio_of(unexplained); complete && interaction) {
        bar.predicted = std::exp(product);
        bar.note = fmt::format("{} together take {} times what the product of its switches says{}", bar.label,
                               format_ratio(interaction->time_ratio, interaction->interval),
                               !interaction->interval   ? ""
                               : interaction->differs() ? ": they interact"
                                                        : ": the product explains it");
      }
    }
    bars.push_back(std::move(bar));
  }
  std::ranges::stable_sort(bars, std::greater<>(),
                           [](const Bar& bar) { return std::abs(std::log(bar.step.time_ratio)); });
  return bars;
}

// Returns bars of presets in planned order; each begins where the one before it ends.
std::vector<Bar> preset_bars(const FigureInput& input, const ArmEffects& effects) {
  std::vector<const ArmRecord*> presets;
  for (const ArmRecord& arm : input.arms) {
    if (arm.command.empty() && arm_parts(arm.label).switches.empty() && effects.logs.contains(arm.label)) {
      presets.push_back(&arm);
    }
  }
  std::vector<Bar> bars;
  if (presets.size() < kFewestPresets || !presets.front()->baseline) {
    return bars;
  }
  for (std::size_t i = 1; i < presets.size(); ++i) {
    const LaunchLogs& own = effects.logs.at(presets[i]->label);
    const auto step = ratio_of(difference(own, effects.logs.at(presets[i - 1]->label)));
    const auto whole = ratio_of(own);
    if (!step || !whole) {
      continue;
    }
    const double from = bars.empty() ? 1 : bars.back().to;
    bars.push_back({.label = presets[i]->label,
                    .arm = presets[i]->label,
                    .from = from,
                    .to = whole->time_ratio,
                    .step = *step,
                    .predicted = {},
                    .note = {}});
  }
  return bars;
}

Json bars_view(const std::string& dataset, const std::string& title, const std::string& axis,
               const std::vector<Bar>& bars) {
  Json labels = Json::array();
  for (const Bar& bar : bars) {
    labels.push_back(bar.label);
  }
  const Json y{{"field", "label"},
               {"type", "nominal"},
               {"sort", labels},
               {"title", nullptr},
               {"axis",
                {{"tickSize", 0},
                 {"domain", false},
                 {"labelLimit", 300},
                 {"minExtent", 300},
                 {"maxExtent", 300},
                 {"labelPadding", 6}}}};
  const auto x = [&](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", axis},
                {"scale", {{"type", "log"}, {"nice", false}, {"padding", 20}}},
                {"axis", {{"format", ".3~f"}, {"tickCount", 8}, {"labelOverlap", "greedy"}}}};
  };
  const Json color{{"condition", {{"test", "datum.to < datum.from"}, {"value", kFasterColor}}},
                   {"value", kSlowerColor}};
  const Json tooltip{{{"field", "arm"}},
                     {{"field", "ratio"}, {"title", "time ratio"}, {"format", ".4f"}},
                     {{"field", "low"}, {"title", "95 % from"}, {"format", ".4f"}},
                     {{"field", "high"}, {"title", "95 % to"}, {"format", ".4f"}},
                     {{"field", "launches"}},
                     {{"field", "predicted"}, {"title", "product of its switches"}, {"format", ".4f"}}};
  Json layers{
      figure_layer(dataset, "true", {{"type", "bar"}, {"height", 13}, {"opacity", 0.75}},
                   {{"x", x("from")}, {"x2", {{"field", "to"}}}, {"y", y}, {"color", color}, {"tooltip", tooltip}}),
      Json{{"data", {{"values", {Json::object()}}}},
           {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", kInkColor}}},
           {"encoding", {{"x", {{"datum", 1}}}}}}};
  // Vega warns about a scale without values.
  if (std::ranges::any_of(bars, [](const Bar& bar) { return bar.step.interval.has_value(); })) {
    layers.push_back(
        figure_layer(dataset, "isValid(datum.bar_low)", {{"type", "rule"}, {"strokeWidth", 1.6}, {"color", kInkColor}},
                     {{"x", x("bar_low")}, {"x2", {{"field", "bar_high"}}}, {"y", y}, {"tooltip", tooltip}}));
  }
  if (std::ranges::any_of(bars, [](const Bar& bar) { return bar.predicted.has_value(); })) {
    layers.push_back(figure_layer(dataset, "isValid(datum.predicted)",
                                  {{"type", "point"},
                                   {"shape", "diamond"},
                                   {"size", 70},
                                   {"filled", false},
                                   {"strokeWidth", 1.8},
                                   {"color", kInkColor}},
                                  {{"x", x("predicted")}, {"y", y}, {"tooltip", tooltip}}));
  }
  layers.push_back(figure_layer(
      dataset, "true", {{"type", "text"}, {"align", "left"}, {"fontSize", 11}, {"color", kInkColor}},
      {{"x", {{"value", kAblationWidth + 10}}}, {"y", y}, {"text", {{"field", "text"}}}, {"tooltip", tooltip}}));
  return {{"title", title}, {"width", kAblationWidth}, {"height", {{"step", kAblationBarHeight}}}, {"layer", layers}};
}

Json data_of(const std::vector<Bar>& bars, const ArmEffects& effects) {
  double lowest = 1;
  double highest = 1;
  for (const Bar& bar : bars) {
    lowest = std::min(lowest, bar.to);
    highest = std::max(highest, bar.to);
  }
  Json rows = Json::array();
  for (const Bar& bar : bars) {
    Json datum{{"label", bar.label},
               {"arm", bar.arm},
               {"from", shortened(bar.from)},
               {"to", shortened(bar.to)},
               {"ratio", shortened(bar.step.time_ratio)},
               {"launches", effects.logs.at(bar.arm).size()},
               {"text", format_ratio(bar.step.time_ratio, bar.step.interval)}};
    if (const auto& interval = bar.step.interval) {
      datum["low"] = shortened(interval->low);
      datum["high"] = shortened(interval->high);
      // The interval of the step, where its end is drawn.
      datum["bar_low"] = shortened(std::max(bar.from * interval->low, lowest / kAblationFrame));
      datum["bar_high"] = shortened(std::min(bar.from * interval->high, highest * kAblationFrame));
    }
    if (bar.predicted) {
      datum["predicted"] = shortened(*bar.predicted);
    }
    rows.push_back(std::move(datum));
  }
  return rows;
}

}  // namespace

bool has_switches(const FigureInput& input) {
  const ArmEffects effects = arm_effects(input.rows.rows);
  return !switch_bars(input, effects).empty() || !preset_bars(input, effects).empty();
}

Figure ablation_figure(const FigureInput& input) {
  const ArmEffects effects = arm_effects(input.rows.rows);
  const auto switches = switch_bars(input, effects);
  const auto presets = preset_bars(input, effects);
  Table table{.title = "Data of the figure: time with a switch over time without, mean over cells",
              .columns = {{"Bar"}, {"Compared with"}, {"Time ratio [95 %]", true}, {"Product of its switches", true}},
              .rows = {},
              .notes = {}};
  const auto add_rows = [&](const std::vector<Bar>& bars, bool along) {
    std::string before = input.summary.baseline();
    for (const Bar& bar : bars) {
      table.rows.push_back(
          {input.summary.run.id,
           0,
           {bar.arm, along ? before : arm_parts(bar.arm).base, format_ratio(bar.step.time_ratio, bar.step.interval),
            bar.predicted ? format_ratio(*bar.predicted) : ""}});
      before = bar.arm;
      if (!bar.note.empty()) {
        table.notes.push_back(bar.note + ".");
      }
    }
  };
  add_rows(switches, false);
  add_rows(presets, true);
  std::string interactions;
  for (const Bar& bar : switches) {
    if (!bar.note.empty()) {
      interactions += " " + bar.note + ".";
    }
  }
  const std::string where =
      effects.cells.size() == 1
          ? effects.cells.front()
          : fmt::format("the mean over the {} cells in which every arm has a ratio", effects.cells.size());
  const std::string title = fmt::format("What each switch does: {}", input.rows.setting);
  Figure figure{
      .title = title,
      .caption = fmt::format(
          "Time with a switch (+), or without it (-), over time of the arm before the switch; below 1 is faster. Equal "
          "weights over cells: {}. Rules are 95 % intervals "
          "over launches.{}{}{}{}",
          where, switches.empty() ? "" : " Largest effect first.",
          presets.empty() ? "" : " Along presets, each bar begins where the one above it ends.",
          interactions.empty() ? "" : " A diamond marks the product of the single switches." + interactions,
          effects.left_out.empty() ? ""
                                   : fmt::format(" Left out, with a ratio in less than half of the cells: {}.",
                                                 fmt::join(effects.left_out, ", "))),
      .spec = start_spec(title),
      .data = std::move(table)};
  figure.spec["datasets"] = Json::object();
  Json views = Json::array();
  if (!switches.empty()) {
    figure.spec["datasets"]["switches"] = data_of(switches, effects);
    views.push_back(bars_view("switches", "Single switches and combinations of them",
                              "time ratio to the arm without the change (below 1 is faster)", switches));
  }
  if (!presets.empty()) {
    figure.spec["datasets"]["presets"] = data_of(presets, effects);
    views.push_back(bars_view("presets", fmt::format("From {} along presets", input.summary.baseline()),
                              fmt::format("time ratio to {} (below 1 is faster)", input.summary.baseline()), presets));
  }
  figure.spec["vconcat"] = views;
  figure.spec["spacing"] = 24;
  return figure;
}

}  // namespace decodelab
