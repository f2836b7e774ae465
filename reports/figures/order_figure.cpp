// Contrasts of single blocks in the order in which they ran: a drift of the machine, a bad launch, void blocks.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/comparison.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kOrderWidth = 960;
constexpr int kOrderHeight = 74;
constexpr std::size_t kOrderMostArms = 6;
constexpr std::size_t kOrderMostPoints = 900;  // of a figure; above, every n-th cell is drawn
constexpr double kSpreadOfABlock = 0.7;        // of the distance of two blocks

// A row of the data holds the blocks of one cell and arm, in order; `at` sets cells apart within a block.
Json blocks_layer(const std::string& arm, const std::string& condition, Json mark, Json encoding) {
  Json layer = figure_layer("blocks", arm, std::move(mark), std::move(encoding));
  for (Json step : {Json{{"flatten", {"order", "launch", "percent", "others", "void"}}},
                    Json{{"calculate", "datum.order + datum.at"}, {"as", "x"}}, Json{{"filter", condition}}}) {
    layer["transform"].push_back(std::move(step));
  }
  return layer;
}

Json arm_view(const ArmRecord& arm, bool last) {
  const std::string here = fmt::format("datum.arm === {}", quoted(arm.label));
  Json x{{"field", "x"},
         {"type", "quantitative"},
         {"title", nullptr},
         {"scale", {{"zero", false}, {"nice", false}, {"padding", 8}}},
         {"axis", {{"grid", false}, {"format", "d"}, {"labels", false}, {"tickMinStep", 1}}}};
  if (last) {
    x["title"] = "block, in the order in which they ran";
    x["axis"]["labels"] = true;
  }
  const Json y{{"field", "percent"},
               {"type", "quantitative"},
               {"title", "off its mean, %"},
               {"scale", {{"zero", true}, {"padding", 4}}},
               {"axis", {{"tickCount", 4}, {"format", "~r"}}}};
  const Json tooltip{{{"field", "label"}, {"title", "cell"}},
                     {{"field", "arm"}},
                     {{"field", "order"}, {"title", "block"}},
                     {{"field", "launch"}},
                     {{"field", "percent"}, {"title", "off the row's mean, %"}, {"format", "+.3~r"}},
                     {{"field", "others"}, {"title", "core time of others"}, {"format", ".1%"}}};
  return {
      {"title",
       {{"text", arm.label}, {"fontSize", 11}, {"fontWeight", "normal"}, {"offset", 3}, {"limit", kOrderWidth}}},
      {"width", kOrderWidth},
      {"height", kOrderHeight},
      {"layer",
       {Json{{"data", {{"values", {Json::object()}}}},
             {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", kInkColor}}},
             {"encoding", {{"y", {{"datum", 0}}}}}},
        blocks_layer(
            here, "datum.void === 0", {{"type", "point"}, {"filled", true}, {"size", 16}, {"opacity", 0.75}},
            {{"x", x},
             {"y", y},
             {"shape",
              {{"condition", {{"test", "datum.launch % 2 === 0"}, {"value", "circle"}}}, {"value", "triangle-up"}}},
             {"color",
              {{"condition", {{"test", "datum.launch % 2 === 0"}, {"value", kEvenColor}}}, {"value", kOddColor}}},
             {"tooltip", tooltip}}),
        blocks_layer(
            here, "datum.void === 1",
            {{"type", "text"}, {"text", "\xc3\x97"}, {"fontSize", 14}, {"fontWeight", "bold"}, {"color", kInkColor}},
            {{"x", x}, {"y", y}, {"tooltip", tooltip}})}}};
}

}  // namespace

Figure order_figure(const FigureInput& input) {
  std::map<std::int64_t, std::vector<const BlockRecord*>> blocks_of_cell;
  std::map<const BlockRecord*, std::int64_t> order;  // within its cell, so that all cells share an axis
  for (const BlockRecord& block : input.data.blocks) {
    order[&block] = std::ssize(blocks_of_cell[block.cell_id]) + 1;
    blocks_of_cell[block.cell_id].push_back(&block);
  }
  std::int64_t baseline = 0;
  std::vector<ArmRecord> arms;
  std::vector<const SummaryRow*> rows;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->time_ratio && !row->arm.baseline) {
      rows.push_back(row);
    }
  }
  for (const ArmRecord& arm : input.arms) {
    if (arm.baseline) {
      baseline = arm.id;
    }
    const bool any = std::ranges::any_of(rows, [&](const SummaryRow* row) { return row->arm.id == arm.id; });
    if (any && arms.size() < kOrderMostArms) {
      arms.push_back(arm);
    }
  }
  std::size_t points = 0;
  for (const SummaryRow* row : rows) {
    points += blocks_of_cell[row->cell.id].size();
  }
  const std::size_t stride = std::max<std::size_t>(1, (points + kOrderMostPoints - 1) / kOrderMostPoints);
  std::vector<std::int64_t> cells;
  for (const SummaryRow* row : rows) {
    if (cells.empty() || cells.back() != row->cell.id) {
      cells.push_back(row->cell.id);
    }
  }
  // Within the place of a block, cells in the order in which they ran.
  const auto offset_of = [&](std::int64_t cell) {
    const auto index = std::ranges::find(cells, cell) - cells.begin();
    return kSpreadOfABlock * ((static_cast<double>(index) + 0.5) / static_cast<double>(cells.size()) - 0.5);
  };
  Json data = Json::array();
  Table table{.title = "Data of the figure: spread of single blocks",
              .columns = {{"Cell"}, {"Arm"}, {"Blocks", true}, {"Void", true}, {"Standard deviation", true}},
              .rows = {},
              .notes = {}};
  std::map<std::int64_t, std::size_t> seen;  // rows of an arm, of which every n-th is drawn
  for (const SummaryRow* row : rows) {
    if (std::ranges::find(arms, row->arm.id, &ArmRecord::id) == arms.end()) {
      continue;
    }
    const auto& blocks = blocks_of_cell[row->cell.id];
    const ValidBlocks valid = valid_blocks(blocks);
    const double center = std::log(*row->time_ratio);
    std::vector<double> contrasts;
    for (const BlockContrast& contrast : row->comparison.blocks) {
      contrasts.push_back(contrast.contrast);
    }
    table.rows.push_back(
        {row->run_id,
         row->cell.id,
         {cell_label(row->cell), row->arm.label, std::to_string(contrasts.size()), std::to_string(valid.void_blocks),
          contrasts.size() < 2 ? "" : format_percent(standard_deviation(contrasts))}});
    if (seen[row->arm.id]++ % stride != 0) {
      continue;
    }
    Json datum{{"label", cell_label(row->cell)}, {"arm", row->arm.label}, {"at", shortened(offset_of(row->cell.id))}};
    for (const char* key : {"order", "launch", "percent", "others", "void"}) {
      datum[key] = Json::array();
    }
    for (const BlockRecord* block : blocks) {
      const Comparison one = compare_arms(std::span(&block, 1), row->arm.id, baseline);
      if (one.blocks.empty()) {
        continue;
      }
      datum["order"].push_back(order[block]);
      datum["launch"].push_back(block->launch);
      datum["percent"].push_back(std::round(1e4 * std::expm1(one.blocks.front().contrast - center)) / 100);
      datum["others"].push_back(std::round(1000 * block->other_cpu_share) / 1000);
      datum["void"].push_back(std::ranges::find(valid.blocks, block) == valid.blocks.end() ? 1 : 0);
    }
    data.push_back(std::move(datum));
  }
  const std::string title = fmt::format("Blocks in run order: {}", input.rows.setting);
  Figure figure{
      .title = title,
      .caption = fmt::format(
          "Each point is the paired contrast of one block in one cell, as the per cent that it lies off the mean of "
          "its cell and arm; launches in alternating colours and shapes. Without drift the points "
          "lie evenly about the line, and launches at one height. A cross is a void block, which does not count.{}{}",
          stride > 1 ? fmt::format(" Of every {} cells one is drawn; the table has all.", stride) : "",
          arms.size() == kOrderMostArms ? fmt::format(" The first {} arms.", kOrderMostArms) : ""),
      .spec = start_spec(title),
      .data = std::move(table)};
  figure.spec["datasets"] = {{"blocks", data}};
  Json views = Json::array();
  for (std::size_t i = 0; i < arms.size(); ++i) {
    views.push_back(arm_view(arms[i], i + 1 == arms.size()));
  }
  figure.spec["vconcat"] = views;
  figure.spec["spacing"] = 10;
  return figure;
}

}  // namespace decodelab
