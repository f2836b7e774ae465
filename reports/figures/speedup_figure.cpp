// Heat maps of speed-ups over batch and length, with the number in each cell and hatches where it may be none.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "reports/figures/curves.h"
#include "reports/figures/effects.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRowHeight = 26;
constexpr int kSpeedupWidestCell = 56;
constexpr int kNarrowestNumber = 30;  // pixels of a cell that "0.72" fits into
constexpr double kLeastSpan = 0.05;   // in log2: keeps a map of mere noise pale
// Three diagonals in the square from -1 to 1.
constexpr const char* kHatch = "M-1,0L0,-1M-1,1L1,-1M0,1L1,0";

struct Value {
  const SummaryRow* row = nullptr;
  std::optional<RatioEstimate> estimate;  // time of the arm over time of the reference
};

struct Map {
  std::string arm;
  std::string reference;
  std::vector<Value> values;
};

LaunchLogs logs_of(const SummaryRow& row) { return mean_contrasts(row.comparison); }

std::optional<RatioEstimate> against_baseline(const SummaryRow& row) {
  if (!row.time_ratio) {
    return std::nullopt;
  }
  return RatioEstimate{.time_ratio = *row.time_ratio, .interval = row.time_ratio_interval()};
}

// Maps of all arms against one of them. Against the baseline the ratios are those of the tables.
std::vector<Map> maps_against(const FigureInput& input, const ArmRecord& reference) {
  std::map<std::int64_t, LaunchLogs> reference_logs;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->arm.id == reference.id && row->time_ratio) {
      reference_logs[row->cell.id] = logs_of(*row);
    }
  }
  std::vector<Map> maps;
  for (const ArmRecord& arm : input.arms) {
    if (arm.id == reference.id || (!reference.baseline && !arm.command.empty())) {
      continue;
    }
    Map map{.arm = arm.label, .reference = reference.label, .values = {}};
    bool any = false;
    for (const SummaryRow* row : input.rows.rows) {
      if (row->arm.id != arm.id) {
        continue;
      }
      Value value{.row = row, .estimate = std::nullopt};
      if (reference.baseline) {
        value.estimate = against_baseline(*row);
      } else if (const auto found = reference_logs.find(row->cell.id);
                 found != reference_logs.end() && row->time_ratio) {
        LaunchLogs own = logs_of(*row);
        if (row->arm.baseline) {
          for (const auto& [launch, value_of_launch] : found->second) {
            own[launch] = 0;
          }
        }
        value.estimate = ratio_of(difference(own, found->second));
      }
      any = any || value.estimate;
      map.values.push_back(value);
    }
    if (any) {
      maps.push_back(std::move(map));
    }
  }
  return maps;
}

// Other engines are what a headline refers to; where none was measured, the baseline.
std::vector<Map> maps_of(const FigureInput& input) {
  std::vector<Map> maps;
  for (const ArmRecord& arm : input.arms) {
    if (arm.command.empty()) {
      continue;
    }
    for (Map& map : maps_against(input, arm)) {
      maps.push_back(std::move(map));
    }
  }
  if (!maps.empty()) {
    return maps;
  }
  for (const ArmRecord& arm : input.arms) {
    if (arm.baseline) {
      return maps_against(input, arm);
    }
  }
  return maps;
}

std::string number(double speedup) {
  return speedup >= 100  ? fmt::format("{:.0f}", speedup)
         : speedup >= 10 ? fmt::format("{:.1f}", speedup)
                         : fmt::format("{:.2f}", speedup);
}

Json map_view(const std::string& title, const std::string& condition, const Json& lengths, const Json& batches,
              int step, double span) {
  const int columns_width = step * static_cast<int>(lengths.size());
  const Json x{
      {"field", "length"},
      {"type", "ordinal"},
      {"sort", lengths},
      {"title", "length (tokens)"},
      {"scale", {{"domain", lengths}}},
      {"axis", {{"labelAngle", step < 44 ? -90 : 0}, {"domain", false}, {"tickSize", 0}, {"labelPadding", 5}}}};
  const Json y{{"field", "batch"},
               {"type", "ordinal"},
               {"sort", batches},
               {"title", "batch"},
               {"scale", {{"domain", batches}}},
               {"axis", {{"domain", false}, {"tickSize", 0}, {"labelPadding", 5}}}};
  const Json tooltip{{{"field", "arm"}},
                     {{"field", "reference"}, {"title", "against"}},
                     {{"field", "batch"}},
                     {{"field", "length"}},
                     {{"field", "speedup"}, {"format", ".4f"}},
                     {{"field", "low"}, {"title", "95 % from"}, {"format", ".4f"}},
                     {{"field", "high"}, {"title", "95 % to"}, {"format", ".4f"}},
                     {{"field", "launches"}},
                     {{"field", "fate"}, {"title", "status"}}};
  const Json color{{"field", "log2"},
                   {"type", "quantitative"},
                   {"scale",
                    {{"domain", {-span, 0, span}},
                     {"range", {"#E69F00", "#F2F2F0", "#56B4E9"}},
                     {"clamp", true},
                     {"interpolate", "rgb"}}},
                   {"legend",
                    {{"title", "speed-up"},
                     {"orient", "right"},
                     {"gradientLength", 90},
                     {"values", {-span, 0, span}},
                     {"labelExpr", "format(pow(2, datum.value), '.2f')"}}}};
  const std::string valid = condition + " && isValid(datum.log2)";
  Json layers{figure_layer("cells", valid, {{"type", "rect"}, {"stroke", kPaperColor}, {"strokeWidth", 1}},
                           {{"x", x}, {"y", y}, {"color", color}, {"tooltip", tooltip}}),
              figure_layer("cells", valid + " && datum.unsure",
                           {{"type", "point"},
                            {"shape", kHatch},
                            {"filled", false},
                            {"stroke", kDarkText},
                            {"strokeWidth", 0.7},
                            {"opacity", 0.4},
                            {"size", (kRowHeight - 2) * (kRowHeight - 2)}},
                           {{"x", x}, {"y", y}}),
              figure_layer("cells", condition + " && isValid(datum.fate)",
                           {{"type", "text"}, {"text", "\xc3\x97"}, {"fontSize", 13}, {"color", kInkColor}},
                           {{"x", x}, {"y", y}, {"tooltip", tooltip}})};
  if (step >= kNarrowestNumber) {
    layers.push_back(figure_layer("cells", valid,
                                  {{"type", "text"}, {"fontSize", step < 36 ? 10 : 11}, {"color", kDarkText}},
                                  {{"x", x}, {"y", y}, {"text", {{"field", "number"}}}, {"tooltip", tooltip}}));
  }
  return {{"title", {{"text", title}, {"limit", columns_width + 70}}},
          {"width", {{"step", step}}},
          {"height", {{"step", kRowHeight}}},
          {"layer", layers}};
}

}  // namespace

Figure speedup_figure(const FigureInput& input) {
  const auto maps = maps_of(input);
  std::set<std::int64_t> length_set;
  for (const SummaryRow* row : input.rows.rows) {
    length_set.insert(row->cell.length);
  }
  const Json lengths(std::vector<std::int64_t>(length_set.begin(), length_set.end()));
  const Json batches(batches_of(input.rows));
  const auto columns = static_cast<std::size_t>(
      std::clamp<int>(kFigureWidth / (static_cast<int>(lengths.size()) * kSpeedupWidestCell + 140), 1, 3));
  const int step =
      std::min(kSpeedupWidestCell, (kFigureWidth / static_cast<int>(columns) - 140) / static_cast<int>(lengths.size()));
  Json cells = Json::array();
  double span = kLeastSpan;
  Table table{.title = "Data of the figure: time of the reference over time of the arm",
              .columns = {{"Arm"}, {"Against"}, {"Cell"}, {"Speed-up [95 %]", true}},
              .rows = {},
              .notes = {}};
  for (const Map& map : maps) {
    for (const Value& value : map.values) {
      const SummaryRow& row = *value.row;
      Json datum{{"arm", map.arm},
                 {"reference", map.reference},
                 {"batch", row.cell.batch},
                 {"length", row.cell.length},
                 {"launches", row.launches}};
      if (!value.estimate) {
        if (row.comparable() && row.blocks > 0) {
          datum["fate"] = "no time of " + map.reference;
        } else if (row.status == RowStatus::planned) {
          continue;
        } else {
          datum["fate"] = to_string(row.status);
        }
        cells.push_back(std::move(datum));
        continue;
      }
      const double speedup = 1 / value.estimate->time_ratio;
      span = std::max(span, std::abs(std::log2(speedup)));
      datum["speedup"] = shortened(speedup);
      datum["log2"] = shortened(std::log2(speedup));
      datum["number"] = number(speedup);
      datum["unsure"] = !value.estimate->differs();
      std::optional<Interval> inverse;
      if (const auto& interval = value.estimate->interval) {
        datum["low"] = shortened(1 / interval->high);
        datum["high"] = shortened(1 / interval->low);
        inverse = Interval{1 / interval->high, 1 / interval->low};
      }
      cells.push_back(std::move(datum));
      table.rows.push_back(
          {row.run_id, row.cell.id, {map.arm, map.reference, cell_label(row.cell), format_ratio(speedup, inverse)}});
    }
  }
  const bool own = maps.empty() || std::ranges::any_of(input.arms, [&](const ArmRecord& arm) {
                     return arm.label == maps.front().reference && arm.command.empty();
                   });
  Figure figure{
      .title = fmt::format("Speed-up by batch and length: {}", input.rows.setting),
      .caption = fmt::format(
          "Time of {} over that of the arm, paired: above 1 is faster. Hatched: the interval spans 1, or there is "
          "none; a cross: no ratio, its tooltip says why.{}{}",
          maps.empty() || maps.front().reference != maps.back().reference ? "the reference" : maps.front().reference,
          step < kNarrowestNumber
              ? " There are too many lengths for numbers; they stand in the tooltips and in the table."
              : "",
          own ? " The reference is an arm of this program and no other engine: these are contrasts within it." : ""),
      .spec = start_spec(fmt::format("Speed-up by batch and length: {}", input.rows.setting)),
      .data = std::move(table)};
  figure.spec["datasets"] = {{"cells", cells}};
  Json lines = Json::array();
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (i % columns == 0) {
      lines.push_back({{"hconcat", Json::array()}, {"spacing", 90}, {"bounds", "flush"}});
    }
    lines.back()["hconcat"].push_back(map_view(
        maps.front().reference == maps.back().reference ? maps[i].arm
                                                        : fmt::format("{} against {}", maps[i].arm, maps[i].reference),
        fmt::format("datum.arm === {} && datum.reference === {}", quoted(maps[i].arm), quoted(maps[i].reference)),
        lengths, batches, step, shortened(span)));
  }
  figure.spec["vconcat"] = lines;
  return figure;
}

}  // namespace decodelab
