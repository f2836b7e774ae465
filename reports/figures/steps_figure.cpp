// Single steps of the cell that a reader picks: their distribution, and one by one in the order in which they ran.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/curves.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPinned = 20;      // cells with raw steps on the page; for the others it has quantiles
constexpr std::size_t kMostQuantiles = 200;  // of an arm in a cell
constexpr std::size_t kFewestQuantiles = 21;
constexpr std::size_t kQuantileBudget = 6000;  // of a figure; 7 bytes each
constexpr std::size_t kRawBudget = 6000;
constexpr std::size_t kStepsMostPoints = 160;  // of an arm in a cell
constexpr std::size_t kStepsMostPanels = 8;    // arms with steps in order, below each other
constexpr int kStepsPanelHeight = 56;
constexpr int kLeftWidth = 400;
constexpr int kRightWidth = 540;

struct Step {
  std::size_t block = 0;
  double ns = 0;
};
using StepsOfArms = std::map<std::int64_t, std::vector<Step>>;

std::map<std::int64_t, StepsOfArms> steps_of_cells(const FigureInput& input) {
  std::set<std::int64_t> here;
  std::set<std::int64_t> arms;
  for (const SummaryRow* row : input.rows.rows) {
    here.insert(row->cell.id);
  }
  for (const ArmRecord& arm : input.arms) {
    arms.insert(arm.id);
  }
  std::map<std::int64_t, StepsOfArms> steps;
  std::map<std::int64_t, std::size_t> index;
  for (const BlockRecord& block : input.data.blocks) {
    if (!here.contains(block.cell_id)) {
      continue;
    }
    for (const VisitRecord& visit : block.visits) {
      if (!arms.contains(visit.arm_id)) {
        continue;
      }
      for (const std::int64_t ns : visit.samples_ns) {
        steps[block.cell_id][visit.arm_id].push_back({index[block.cell_id], static_cast<double>(ns)});
      }
    }
    ++index[block.cell_id];
  }
  return steps;
}

// Cells by how much they tell: those that most arms ran, the largest first.
std::vector<CellRecord> ranked_cells(const FigureInput& input, const std::map<std::int64_t, StepsOfArms>& steps) {
  std::vector<CellRecord> cells;
  std::set<std::int64_t> known;
  for (const SummaryRow* row : input.rows.rows) {
    if (steps.contains(row->cell.id) && known.insert(row->cell.id).second) {
      cells.push_back(row->cell);
    }
  }
  std::ranges::stable_sort(cells, std::greater<>(), [&](const CellRecord& cell) {
    return std::tuple(steps.at(cell.id).size(), cell.batch * cell.length);
  });
  return cells;
}

// The first, and others spread evenly over the rest of the ranking.
std::set<std::int64_t> pinned_cells(const std::vector<CellRecord>& ranked) {
  std::set<std::int64_t> pinned;
  const std::size_t count = std::min(kMostPinned, ranked.size());
  for (std::size_t i = 0; i < count; ++i) {
    pinned.insert(ranked[i * ranked.size() / count].id);
  }
  return pinned;
}

Json picker(const FigureInput& input, const CellRecord& first) {
  std::set<std::int64_t> lengths;
  for (const SummaryRow* row : input.rows.rows) {
    lengths.insert(row->cell.length);
  }
  const std::size_t rows = batches_of(input.rows).size();
  const int step = std::clamp<int>(kLeftWidth / static_cast<int>(lengths.size()), 9, 44);
  const int height = std::clamp<int>(200 / static_cast<int>(rows), 12, 26);
  return {
      {"title", "Click a cell"},
      {"width", {{"step", step}}},
      {"height", {{"step", height}}},
      {"data", {{"name", "cells"}}},
      {"params",
       {{{"name", "picked"},
         {"select", {{"type", "point"}, {"fields", {"cell"}}, {"toggle", false}, {"clear", false}}},
         {"value", {{{"cell", first.id}}}}}}},
      {"mark", {{"type", "rect"}, {"cursor", "pointer"}, {"stroke", kPaperColor}, {"strokeWidth", 1}}},
      {"encoding",
       {{"x",
         {{"field", "length"},
          {"type", "ordinal"},
          {"title", "length (tokens)"},
          {"axis",
           {{"labelAngle", step < 40 ? -90 : 0}, {"tickSize", 0}, {"domain", false}, {"labelOverlap", "greedy"}}}}},
        {"y",
         {{"field", "batch"}, {"type", "ordinal"}, {"title", "batch"}, {"axis", {{"tickSize", 0}, {"domain", false}}}}},
        {"color",
         {{"condition",
           {{{"param", "picked"}, {"empty", false}, {"value", "#D55E00"}},
            {{"test", "datum.raw"}, {"value", "#56B4E9"}}}},
          {"value", "#b9c1c9"}}},
        {"tooltip", {{{"field", "label"}, {"title", "cell"}}, {{"field", "kept"}, {"title", "on this page"}}}}}}};
}

Json distribution_view(const FigureInput& input) {
  const Json x{{"field", "ms"},
               {"type", "quantitative"},
               {"title", words_of(input.rows.rows.front()->cell.phase).unit},
               {"scale", {{"zero", false}, {"nice", false}, {"padding", 6}}},
               {"axis", {{"format", "~r"}, {"tickCount", 6}}}};
  const Json y{{"field", "share"},
               {"type", "quantitative"},
               {"title", "share of steps"},
               {"scale", {{"domain", {0, 1}}}},
               {"axis", {{"format", ".0%"}, {"tickCount", 5}}}};
  const Json color = arm_color(input.arms);
  const Json dash = arm_dash(input.arms);
  Json line{{"name", "distribution"},
            {"data", {{"name", "quantiles"}}},
            {"transform",
             {{{"filter", {{"param", "picked"}}}},
              {{"flatten", {"ms"}}},
              {{"window", {{{"op", "row_number"}, {"as", "rank"}}}}, {"groupby", {"cell", "arm"}}},
              {{"joinaggregate", {{{"op", "count"}, {"as", "count"}}}}, {"groupby", {"cell", "arm"}}},
              {{"calculate", "datum.count > 1 ? (datum.rank - 1) / (datum.count - 1) : 0.5"}, {"as", "share"}}}},
            {"mark", {{"type", "line"}, {"interpolate", "step-after"}, {"strokeWidth", 1.8}}},
            {"params", {zoom_parameter("zoom")}},
            {"encoding", {{"x", x}, {"y", y}, {"color", color}, {"strokeDash", dash}, {"opacity", shown_opacity()}}}};
  const Json tooltip{{{"field", "arm"}},
                     {{"field", "name"}, {"title", "quantile"}},
                     {{"field", "ms"}, {"format", ".4~r"}},
                     {{"field", "n"}, {"title", "steps"}}};
  Json ticks{{"data", {{"name", "marks"}}},
             {"transform", {{{"filter", {{"param", "picked"}}}}}},
             {"mark", {{"type", "point"}, {"filled", true}, {"size", 60}, {"stroke", kPaperColor}, {"strokeWidth", 1}}},
             {"encoding",
              {{"x", x},
               {"y", y},
               {"color", color},
               {"shape", arm_shape(input.arms)},
               {"opacity", shown_opacity()},
               {"tooltip", tooltip}}}};
  const Json levels{
      {"data", {{"values", {{{"share", 0.5}}, {{"share", 0.95}}}}}},
      {"mark",
       {{"type", "rule"}, {"strokeDash", {3, 3}}, {"strokeWidth", 0.8}, {"opacity", 0.6}, {"color", kInkColor}}},
      {"encoding", {{"y", y}}}};
  const Json names{{"data", {{"values", {{{"share", 0.5}, {"name", "p50"}}, {{"share", 0.95}, {"name", "p95"}}}}}},
                   {"mark", {{"type", "text"}, {"align", "left"}, {"dx", 4}, {"fontSize", 10.5}, {"color", kInkColor}}},
                   {"encoding", {{"x", {{"value", kLeftWidth}}}, {"y", y}, {"text", {{"field", "name"}}}}}};
  return {{"title", "Share of steps that took at most so long"},
          {"width", kLeftWidth},
          {"height", 230},
          {"layer", {levels, line, ticks, names}}};
}

Json order_view(const FigureInput& input, const ArmRecord& arm, bool last) {
  Json x{{"field", "step"},
         {"type", "quantitative"},
         {"title", nullptr},
         {"scale", {{"nice", false}}},
         {"axis", {{"grid", false}, {"format", "d"}, {"labels", false}}}};
  if (last) {
    x["title"] = "step, in the order in which they ran";
    x["axis"]["labels"] = true;
  }
  const Json y{{"field", "ms"},
               {"type", "quantitative"},
               {"title", input.rows.rows.front()->cell.phase == Phase::generate ? "s" : "ms"},
               {"scale", {{"zero", false}, {"nice", false}, {"padding", 6}}},
               {"axis", {{"tickCount", 3}, {"format", "~r"}}}};
  return {
      {"title",
       {{"text", arm.label}, {"fontSize", 11}, {"fontWeight", "normal"}, {"offset", 3}, {"limit", kRightWidth}}},
      {"width", kRightWidth},
      {"height", kStepsPanelHeight},
      {"data", {{"name", "raw"}}},
      {"transform",
       {{{"filter", fmt::format("datum.arm === {}", quoted(arm.label))}},
        {{"filter", {{"param", "picked"}}}},
        {{"flatten", {"ms", "block"}}},
        {{"window", {{{"op", "row_number"}, {"as", "rank"}}}}},
        {{"calculate", "(datum.rank - 1) * datum.every"}, {"as", "step"}}}},
      {"mark", {{"type", "point"}, {"filled", true}, {"size", 12}, {"opacity", 0.85}}},
      {"encoding",
       {{"x", x},
        {"y", y},
        {"shape", {{"condition", {{"test", "datum.block % 2 === 0"}, {"value", "circle"}}}, {"value", "triangle-up"}}},
        {"color", {{"condition", {{"test", "datum.block % 2 === 0"}, {"value", kEvenColor}}}, {"value", kOddColor}}},
        {"tooltip", {{{"field", "step"}}, {{"field", "block"}}, {{"field", "ms"}, {"format", ".4~r"}}}}}}};
}

}  // namespace

Figure steps_figure(const FigureInput& input) {
  const auto steps = steps_of_cells(input);
  const auto ranked = ranked_cells(input, steps);
  const auto pinned = pinned_cells(ranked);
  const double unit = words_of(input.rows.rows.front()->cell.phase).unit_ns;
  std::size_t rows_of_steps = 0;
  std::size_t pinned_rows = 0;
  for (const auto& [cell, arms] : steps) {
    rows_of_steps += arms.size();
    pinned_rows += pinned.contains(cell) ? arms.size() : 0;
  }
  const std::size_t most_quantiles =
      std::clamp(kQuantileBudget / std::max<std::size_t>(1, rows_of_steps), kFewestQuantiles, kMostQuantiles);
  const std::size_t most_points =
      std::clamp<std::size_t>(kRawBudget / std::max<std::size_t>(1, pinned_rows), 1, kStepsMostPoints);
  Json cells = Json::array();
  Json quantiles = Json::array();
  Json marks = Json::array();
  Json raw = Json::array();
  Table table{.title = "Data of the figure: single steps",
              .columns = {{"Cell"},
                          {"Arm"},
                          {"Steps", true},
                          {"Lowest", true},
                          {"Quarter", true},
                          {"Median", true},
                          {"Three quarters", true},
                          {"p95", true},
                          {"Highest", true}},
              .rows = {},
              .notes = {}};
  for (const CellRecord& cell : ranked) {
    const bool is_pinned = pinned.contains(cell.id);
    cells.push_back({{"cell", cell.id},
                     {"batch", cell.batch},
                     {"length", cell.length},
                     {"label", cell_label(cell)},
                     {"raw", is_pinned},
                     {"kept", is_pinned ? "quantiles and single steps" : "quantiles"}});
    for (const ArmRecord& arm : input.arms) {
      const auto found = steps.at(cell.id).find(arm.id);
      if (found == steps.at(cell.id).end()) {
        continue;
      }
      const std::vector<Step>& of_arm = found->second;
      std::vector<double> sorted;
      for (const Step& step : of_arm) {
        sorted.push_back(step.ns / unit);
      }
      std::sort(sorted.begin(), sorted.end());
      Json ms = Json::array();
      const std::size_t count = std::min(sorted.size(), most_quantiles);
      for (std::size_t i = 0; i < count; ++i) {
        const double share = count == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(count - 1);
        ms.push_back(shortened(quantile(sorted, share)));
      }
      quantiles.push_back({{"cell", cell.id}, {"arm", arm.label}, {"ms", ms}});
      for (const auto& [name, share] : {std::pair("p50", 0.5), std::pair("p95", 0.95)}) {
        marks.push_back({{"cell", cell.id},
                         {"arm", arm.label},
                         {"name", name},
                         {"share", share},
                         {"ms", shortened(quantile(sorted, share))},
                         {"n", sorted.size()}});
      }
      if (is_pinned) {
        Json points = Json::array();
        Json blocks = Json::array();
        const std::size_t stride = (of_arm.size() + most_points - 1) / most_points;
        for (std::size_t i = 0; i < of_arm.size(); i += stride) {
          points.push_back(shortened(of_arm[i].ns / unit));
          blocks.push_back(of_arm[i].block);
        }
        raw.push_back({{"cell", cell.id}, {"arm", arm.label}, {"every", stride}, {"ms", points}, {"block", blocks}});
      }
      const auto text = [&](double share) { return format_time(quantile(sorted, share) * unit); };
      table.rows.push_back({input.summary.run.id,
                            cell.id,
                            {cell_label(cell), arm.label, std::to_string(sorted.size()), text(0), text(0.25), text(0.5),
                             text(0.75), text(0.95), text(1)}});
    }
  }
  const CellRecord& first = ranked.front();
  const std::string title = fmt::format("Single steps: {}", input.rows.setting);
  Json panels = Json::array();
  std::vector<const ArmRecord*> shown;
  for (const ArmRecord& arm : input.arms) {
    if (shown.size() < kStepsMostPanels &&
        std::ranges::any_of(steps, [&](const auto& cell) { return cell.second.contains(arm.id); })) {
      shown.push_back(&arm);
    }
  }
  for (const ArmRecord* arm : shown) {
    panels.push_back(order_view(input, *arm, arm == shown.back()));
  }
  Figure figure{
      .title = title,
      .caption = fmt::format(
          "Above, where JavaScript runs, a click picks a cell; without it this is {}, the largest that most arms ran. "
          "Below: the share of steps that took at most so long, with marks at p50 and p95. Right: "
          "single steps in the order in which they ran, blocks in alternating colours and shapes, so that drift and "
          "warm-up show; of {} cells (blue) the page has them, at most {} of an arm, of the others at most {} "
          "quantiles; blocks.csv has every visit.",
          cell_label(first), pinned.size(), most_points, most_quantiles),
      .spec = start_spec(title),
      .data = std::move(table)};
  add_legend_toggle(figure.spec, "arm", "distribution");
  figure.spec["datasets"] = {{"cells", cells}, {"quantiles", quantiles}, {"marks", marks}, {"raw", raw}};
  figure.spec["hconcat"] = {Json{{"vconcat", {picker(input, first), distribution_view(input)}}, {"spacing", 16}},
                            Json{{"vconcat", panels}, {"spacing", 8}}};
  figure.spec["spacing"] = 40;
  return figure;
}

}  // namespace decodelab
