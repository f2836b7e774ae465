// Forest plot of the paired ratios: a line per cell, a mark per arm.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/page/format.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWidth = 760;
constexpr int kStepOfAnArm = 11;
/// Bars end at this factor beyond the extreme ratios: the interval of two launches can span decades and say nothing.
constexpr double kFrame = 4;

constexpr std::size_t kMostCells = 40;  // above, rows shrink below what can be read; the curves show them all

}  // namespace

bool has_few_ratios(const FigureInput& input) {
  std::set<std::int64_t> cells;
  bool any = false;
  for (const SummaryRow* row : input.rows.rows) {
    cells.insert(row->cell.id);
    any = any || (row->time_ratio && !row->arm.baseline);
  }
  return any && cells.size() <= kMostCells;
}

Figure ratio_figure(const FigureInput& input) {
  const auto& [summary, run_data, rows] = input;
  std::vector<ArmRecord> arms;
  for (const ArmRecord& arm : summary.arms) {
    if (!arm.baseline) arms.push_back(arm);
  }
  Json data = Json::array();
  Json cells = Json::array();
  Table table{.title = "Data of the figure",
              .columns = {{"Cell"},
                          {"Arm"},
                          {fmt::format("Time ratio [{}]", summary.interval_level()), true},
                          {"Detects", true}},
              .rows = {},
              .notes = {}};
  double lowest = 1;
  double highest = 1;
  for (const SummaryRow* row : rows.rows) {
    if (!row->time_ratio || row->arm.baseline) continue;
    lowest = std::min(lowest, *row->time_ratio);
    highest = std::max(highest, *row->time_ratio);
  }
  const auto framed = [&](double ratio) {
    return Json(shortened(std::clamp(ratio, lowest / kFrame, highest * kFrame)));
  };
  for (const SummaryRow* row : rows.rows) {
    if (!row->time_ratio || row->arm.baseline) continue;
    const std::string cell = cell_label(row->cell);
    if (cells.empty() || cells.back() != cell) cells.push_back(cell);
    const bool interval = row->time_ratio_low.has_value();
    data.push_back({{"cell", row->cell.id},
                    {"label", cell},
                    {"arm", row->arm.label},
                    {"ratio", shortened(*row->time_ratio)},
                    {"low", interval ? Json(shortened(*row->time_ratio_low)) : Json(nullptr)},
                    {"high", interval ? Json(shortened(*row->time_ratio_high)) : Json(nullptr)},
                    {"bar_low", interval ? framed(*row->time_ratio_low) : Json(nullptr)},
                    {"bar_high", interval ? framed(*row->time_ratio_high) : Json(nullptr)},
                    {"unseen_low", row->mde ? framed(1 / (1 + *row->mde)) : Json(nullptr)},
                    {"unseen_high", row->mde ? framed(1 + *row->mde) : Json(nullptr)}});
    table.rows.push_back({row->run_id,
                          row->cell.id,
                          {cell, row->arm.label, format_ratio(*row), row->mde ? format_detectable(*row->mde) : ""}});
  }
  // The colours and shapes of an arm are the same in every figure, so the scales are those of all arms.
  Json color = arm_color(summary.arms);
  Json shape = arm_shape(summary.arms);
  Json offset_domain = Json::array();
  for (const ArmRecord& arm : arms) offset_domain.push_back(arm.label);
  for (Json* channel : {&color, &shape}) (*channel)["legend"]["values"] = offset_domain;
  const Json y{{"field", "label"},
               {"type", "nominal"},
               {"sort", cells},
               {"title", nullptr},
               {"axis", {{"grid", true}, {"tickSize", 0}, {"domain", false}, {"labelLimit", 220}}}};
  const Json y_offset{{"field", "arm"}, {"type", "nominal"}, {"scale", {{"domain", offset_domain}}}};
  const auto x = [](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", "time ratio to the baseline (below 1 is faster)"},
                {"scale", {{"type", "log"}, {"nice", false}, {"padding", 14}}},
                {"axis", {{"format", ".3~f"}, {"tickCount", 8}}}};
  };
  const Json tooltip{{{"field", "label"}, {"title", "cell"}},
                     {{"field", "arm"}},
                     {{"field", "ratio"}, {"format", ".4f"}},
                     {{"field", "low"}, {"format", ".4f"}},
                     {{"field", "high"}, {"format", ".4f"}}};
  Figure figure{.title = fmt::format("Paired time ratios: {}", rows.setting),
                .caption = fmt::format(
                    "Time of each arm over that of {}, paired within blocks and averaged over launches, with "
                    "the {} Student-t interval over launches. The grey bar around 1 "
                    "spans effects too small to be found with 80 % power. Bars end at {} times the extreme ratios.",
                    summary.baseline(), summary.interval_level(), kFrame),
                .spec = start_spec(fmt::format("Paired time ratios: {}", rows.setting)),
                .data = std::move(table)};
  figure.spec["width"] = kWidth;
  figure.spec["height"] = {{"step", std::max<int>(18, kStepOfAnArm * static_cast<int>(arms.size())) + 6},
                           {"for", "position"}};
  figure.spec["data"] = {{"values", data}};
  figure.spec["layer"] = {
      Json{{"transform", {{{"filter", "datum.unseen_low !== null"}}}},
           {"mark", {{"type", "rule"}, {"strokeWidth", 6}, {"color", "#8a939c"}, {"opacity", 0.3}}},
           {"encoding", {{"x", x("unseen_low")}, {"x2", {{"field", "unseen_high"}}}, {"y", y}, {"yOffset", y_offset}}}},
      Json{{"data", {{"values", {Json::object()}}}},
           {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", kInkColor}}},
           {"encoding", {{"x", {{"datum", 1}}}}}},
      Json{{"transform", {{{"filter", "datum.low !== null"}}}},
           {"mark", {{"type", "rule"}, {"strokeWidth", 1.8}}},
           {"encoding",
            {{"x", x("bar_low")}, {"x2", {{"field", "bar_high"}}}, {"y", y}, {"yOffset", y_offset}, {"color", color}}}},
      Json{{"mark", {{"type", "point"}, {"filled", true}, {"size", 44}, {"opacity", 1}}},
           {"encoding",
            {{"x", x("ratio")},
             {"y", y},
             {"yOffset", y_offset},
             {"color", color},
             {"shape", shape},
             {"tooltip", tooltip}}}}};
  return figure;
}

}  // namespace decodelab
