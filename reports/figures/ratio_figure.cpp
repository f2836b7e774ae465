// Forest plot of the paired ratios: a line per cell and arm, with the margin, what could not be seen, and the counters
// that moved.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "reports/figures/effects.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/figures/moved_counters.h"
#include "reports/statistics/labels.h"
#include "reports/statistics/verdict.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRatioWidth = 560;
constexpr int kStepOfAnArm = 13;  // height that the text of counters needs
/// Bars end at this factor beyond the extreme ratios: the interval of two launches can span decades and say nothing.
constexpr double kRatioFrame = 4;
// With more cells rows would be too small to read, and there is one per batch size instead.
constexpr std::size_t kRatioMostCells = 40;

/// One line of the plot.
struct Line {
  std::int64_t run_id = 0;
  std::int64_t cell_id = 0;  ///< 0 for the mean of several cells.
  std::string label;
  std::string arm;
  RatioEstimate estimate;
  std::optional<double> mde;
  std::int64_t launches = 0;
  std::string verdict;
  std::string moved;  ///< Counters that moved, in words.
};

std::size_t cell_count(const FigureInput& input) {
  std::set<std::int64_t> cells;
  for (const SummaryRow* row : input.rows.rows) {
    cells.insert(row->cell.id);
  }
  return cells.size();
}

std::vector<Line> lines_by_cell(const FigureInput& input) {
  std::map<std::int64_t, const SummaryRow*> baseline;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->arm.baseline) {
      baseline[row->cell.id] = row;
    }
  }
  std::vector<Line> lines;
  for (const SummaryRow* row : input.rows.rows) {
    if (!row->time_ratio || row->arm.baseline) {
      continue;
    }
    Line line{.run_id = row->run_id,
              .cell_id = row->cell.id,
              .label = cell_label(row->cell),
              .arm = row->arm.label,
              .estimate = {.time_ratio = *row->time_ratio, .interval = row->time_ratio_interval()},
              .mde = row->mde,
              .launches = row->launches,
              .verdict = row->decision.verdict ? to_string(*row->decision.verdict) : "",
              .moved = baseline.contains(row->cell.id) ? moved_counters(*baseline[row->cell.id], *row) : ""};
    lines.push_back(std::move(line));
  }
  return lines;
}

// The mean over the lengths of each batch size.
std::vector<Line> lines_by_batch(const FigureInput& input) {
  std::map<std::int64_t, std::vector<const SummaryRow*>> batches;
  for (const SummaryRow* row : input.rows.rows) {
    batches[row->cell.batch].push_back(row);
  }
  std::vector<Line> lines;
  for (const auto& [batch, rows] : batches) {
    const ArmEffects effects = arm_effects(rows);
    for (const ArmRecord& arm : input.arms) {
      const auto logs = effects.logs.find(arm.label);
      if (arm.baseline || logs == effects.logs.end()) {
        continue;
      }
      const auto estimate = ratio_of(logs->second);
      if (!estimate) {
        continue;
      }
      lines.push_back({.run_id = input.summary.run.id,
                       .cell_id = 0,
                       .label = fmt::format("b{}, {} cells", batch, effects.cells.size()),
                       .arm = arm.label,
                       .estimate = *estimate,
                       .mde = std::nullopt,
                       .launches = std::ssize(logs->second),
                       .verdict = "",
                       .moved = ""});
    }
  }
  return lines;
}

// The common x axis of all layers.
struct RatioAxis {
  double low = 1 / (1 + kSameMargin);
  double high = 1 + kSameMargin;

  void add(double ratio) {
    low = std::min(low, ratio);
    high = std::max(high, ratio);
  }
  Json x(const char* field) const {
    return {
        {"field", field},
        {"type", "quantitative"},
        {"title", "time ratio to the baseline (below 1 is faster)"},
        {"scale", {{"type", "log"}, {"domain", {shortened(low), shortened(high)}}, {"nice", false}, {"padding", 14}}},
        {"axis", {{"format", ".3~f"}, {"tickCount", 8}, {"labelOverlap", "greedy"}}}};
  }
};

}  // namespace

Figure ratio_figure(const FigureInput& input) {
  const bool by_cell = cell_count(input) <= kRatioMostCells;
  const auto lines = by_cell ? lines_by_cell(input) : lines_by_batch(input);
  const RunSummary& summary = input.summary;
  const bool moved = std::ranges::any_of(lines, [](const Line& line) { return !line.moved.empty(); });
  Json data = Json::array();
  Json labels = Json::array();
  Table table{.title = "Data of the figure",
              .columns = {{"Cell"},
                          {"Arm"},
                          {fmt::format("Time ratio [{}]", summary.interval_level()), true},
                          {"Detects", true},
                          {"Launches", true},
                          {"Verdict"}},
              .rows = {},
              .notes = {}};
  if (moved) {
    table.columns.push_back({"Counters a step"});
  }
  double lowest = 1;
  double highest = 1;
  for (const Line& line : lines) {
    lowest = std::min(lowest, line.estimate.time_ratio);
    highest = std::max(highest, line.estimate.time_ratio);
  }
  const auto framed = [&](double ratio) {
    return shortened(std::clamp(ratio, lowest / kRatioFrame, highest * kRatioFrame));
  };
  RatioAxis axis;
  for (const Line& line : lines) {
    if (labels.empty() || labels.back() != line.label) {
      labels.push_back(line.label);
    }
    Json datum{{"cell", line.cell_id},
               {"label", line.label},
               {"arm", line.arm},
               {"ratio", shortened(line.estimate.time_ratio)},
               {"launches", line.launches}};
    const std::string text = format_ratio(line.estimate.time_ratio, line.estimate.interval);
    axis.add(line.estimate.time_ratio);
    if (const auto& interval = line.estimate.interval) {
      datum["low"] = shortened(interval->low);
      datum["high"] = shortened(interval->high);
      datum["bar_low"] = framed(interval->low);
      datum["bar_high"] = framed(interval->high);
      axis.add(framed(interval->low));
      axis.add(framed(interval->high));
    }
    if (line.mde) {
      datum["unseen_low"] = framed(1 / (1 + *line.mde));
      datum["unseen_high"] = framed(1 + *line.mde);
      axis.add(framed(1 / (1 + *line.mde)));
      axis.add(framed(1 + *line.mde));
    }
    if (!line.verdict.empty()) {
      datum["verdict"] = line.verdict;
    }
    if (!line.moved.empty()) {
      datum["moved"] = line.moved;
    }
    data.push_back(std::move(datum));
    table.rows.push_back({line.run_id,
                          line.cell_id,
                          {line.label, line.arm, text, line.mde ? format_detectable(*line.mde) : "",
                           std::to_string(line.launches), line.verdict}});
    if (moved) {
      table.rows.back().fields.push_back(line.moved);
    }
  }
  // The colours and shapes of an arm are the same in every figure, so the scales are those of all arms.
  Json color = arm_color(input.arms);
  Json shape = arm_shape(input.arms);
  Json offsets = Json::array();
  for (const ArmRecord& arm : input.arms) {
    if (!arm.baseline) {
      offsets.push_back(arm.label);
    }
  }
  for (Json* channel : {&color, &shape}) {
    (*channel)["legend"]["values"] = offsets;
  }
  const Json y{{"field", "label"},
               {"type", "nominal"},
               {"sort", labels},
               {"title", nullptr},
               {"axis", {{"grid", true}, {"tickSize", 0}, {"domain", false}, {"labelLimit", 220}}}};
  const Json y_offset{{"field", "arm"}, {"type", "nominal"}, {"scale", {{"domain", offsets}}}};
  const Json tooltip{{{"field", "label"}, {"title", "cell"}},
                     {{"field", "arm"}},
                     {{"field", "ratio"}, {"title", "time ratio"}, {"format", ".4f"}},
                     {{"field", "low"}, {"title", "from"}, {"format", ".4f"}},
                     {{"field", "high"}, {"title", "to"}, {"format", ".4f"}},
                     {{"field", "launches"}},
                     {{"field", "verdict"}},
                     {{"field", "moved"}, {"title", "counters"}}};
  const std::string title = fmt::format("Paired time ratios: {}", input.rows.setting);
  Figure figure{.title = title,
                .caption = fmt::format(
                    "Time of each arm over that of {}, paired within blocks and averaged over launches, with the {} "
                    "Student-t interval over launches. The narrow band "
                    "around 1 is the margin of SAME (1 %); the grey bar beside each row spans effects too small to be "
                    "found with 80 % power. Bars end at {} times the "
                    "extreme ratios.{}{} {}",
                    summary.baseline(), summary.interval_level(), kRatioFrame,
                    by_cell ? ""
                            : fmt::format(" There are too many cells for a row each: each row is the mean over the "
                                          "lengths of a batch size at which every arm has a ratio; it has no verdict."),
                    moved ? " On the right, the counters of a step that moved most." : "", kHowToUse),
                .spec = start_spec(title),
                .data = std::move(table)};
  add_legend_toggle(figure.spec, "arm", "ratios");
  figure.spec["width"] = moved ? kRatioWidth : kRatioWidth + 200;
  figure.spec["height"] = {{"step", std::max<int>(18, kStepOfAnArm * static_cast<int>(offsets.size())) + 6},
                           {"for", "position"}};
  figure.spec["datasets"] = {{"rows", data}};
  const auto on_row = [&](Json encoding) {
    encoding["y"] = y;
    encoding["yOffset"] = y_offset;
    return encoding;
  };
  Json points = figure_layer("rows", "true", {{"type", "point"}, {"filled", true}, {"size", 44}},
                             on_row({{"x", axis.x("ratio")},
                                     {"color", color},
                                     {"shape", shape},
                                     {"opacity", shown_opacity()},
                                     {"tooltip", tooltip}}));
  points["name"] = "ratios";
  points["params"] = {zoom_parameter("zoom")};
  figure.spec["layer"] = {
      Json{{"data", {{"values", {{{"from", shortened(1 / (1 + kSameMargin))}, {"to", 1 + kSameMargin}}}}}},
           {"mark", {{"type", "rect"}, {"color", "#8a939c"}, {"opacity", 0.18}, {"clip", true}}},
           {"encoding", {{"x", axis.x("from")}, {"x2", {{"field", "to"}}}}}},
      figure_layer("rows", "isValid(datum.unseen_low)",
                   {{"type", "rule"}, {"strokeWidth", 6}, {"color", "#8a939c"}, {"opacity", 0.35}, {"clip", true}},
                   on_row({{"x", axis.x("unseen_low")}, {"x2", {{"field", "unseen_high"}}}})),
      Json{{"data", {{"values", {Json::object()}}}},
           {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", kInkColor}}},
           {"encoding", {{"x", {{"datum", 1}}}}}},
      figure_layer("rows", "isValid(datum.low)", {{"type", "rule"}, {"strokeWidth", 1.8}, {"clip", true}},
                   on_row({{"x", axis.x("bar_low")},
                           {"x2", {{"field", "bar_high"}}},
                           {"color", color},
                           {"opacity", shown_opacity()}})),
      points};
  if (moved) {
    figure.spec["layer"].push_back(figure_layer(
        "rows", "isValid(datum.moved)",
        {{"type", "text"}, {"align", "left"}, {"fontSize", 10.5}, {"color", kInkColor}, {"limit", 400}},
        on_row({{"x", {{"value", kRatioWidth + 12}}}, {"text", {{"field", "moved"}}}, {"opacity", shown_opacity()}})));
  }
  return figure;
}

}  // namespace decodelab
