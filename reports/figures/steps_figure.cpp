// Single steps of one cell: their distribution, and one by one in the order in which they ran.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/page/format.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostQuantiles =
    100;                                  // of an arm; with the points below, what a page of several figures can afford
constexpr std::size_t kMostPoints = 480;  // of all arms together

struct Step {
  std::size_t block = 0;
  double ns = 0;
};

// The largest of the cells that most arms ran: there differences matter most.
const SummaryRow& pinned_row(const FigureRows& rows) {
  std::map<std::int64_t, std::int64_t> arms_with_times;
  for (const SummaryRow* row : rows.rows) arms_with_times[row->cell.id] += row->steps > 0;
  return **std::max_element(rows.rows.begin(), rows.rows.end(), [&](const SummaryRow* a, const SummaryRow* b) {
    const auto rank = [&](const SummaryRow* row) {
      return std::tuple(arms_with_times[row->cell.id], row->cell.batch * row->cell.length, -row->cell.id);
    };
    return rank(a) < rank(b);
  });
}

std::map<std::int64_t, std::vector<Step>> steps_of_arms(const RunData& data, std::int64_t cell_id) {
  std::map<std::int64_t, std::vector<Step>> steps;
  std::size_t index = 0;
  for (const BlockRecord& block : data.blocks) {
    if (block.cell_id != cell_id) continue;
    for (const VisitRecord& visit : block.visits) {
      for (const std::int64_t ns : visit.samples_ns) steps[visit.arm_id].push_back({index, static_cast<double>(ns)});
    }
    ++index;
  }
  return steps;
}

}  // namespace

Figure steps_figure(const FigureInput& input) {
  const auto& [summary, data, rows] = input;
  const SummaryRow& pinned = pinned_row(rows);
  const auto steps_of = steps_of_arms(data, pinned.cell.id);
  const std::string cell = cell_label(pinned.cell);
  Json distribution = Json::array();
  Json sequence = Json::array();
  Table table{.title = fmt::format("Data of the figure: single steps in {}", cell),
              .columns = {{"Arm"},
                          {"Steps", true},
                          {"Lowest", true},
                          {"Quarter", true},
                          {"Median", true},
                          {"Three quarters", true},
                          {"Highest", true}},
              .rows = {},
              .notes = {}};
  const std::size_t points_of_an_arm =
      std::max<std::size_t>(1, kMostPoints / std::max<std::size_t>(1, steps_of.size()));
  for (const ArmRecord& arm : summary.arms) {
    const auto found = steps_of.find(arm.id);
    if (found == steps_of.end() || found->second.empty()) continue;
    const std::vector<Step>& steps = found->second;
    std::vector<double> sorted;
    for (const Step& step : steps) sorted.push_back(step.ns);
    std::sort(sorted.begin(), sorted.end());
    const std::size_t quantiles = std::min(sorted.size(), kMostQuantiles);
    for (std::size_t i = 0; i < quantiles; ++i) {
      const double share = quantiles == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(quantiles - 1);
      distribution.push_back(
          {{"arm", arm.label}, {"ms", shortened(quantile(sorted, share) / 1e6)}, {"share", shortened(share)}});
    }
    const std::size_t stride = (steps.size() + points_of_an_arm - 1) / points_of_an_arm;
    for (std::size_t i = 0; i < steps.size(); i += stride) {
      sequence.push_back({{"arm", arm.label},
                          {"step", i},
                          {"ms", shortened(steps[i].ns / 1e6)},
                          {"block", steps[i].block % 2 == 0 ? "even" : "odd"}});
    }
    table.rows.push_back(
        {pinned.run_id,
         pinned.cell.id,
         {arm.label, std::to_string(sorted.size()), format_time(sorted.front()), format_time(quantile(sorted, 0.25)),
          format_time(quantile(sorted, 0.5)), format_time(quantile(sorted, 0.75)), format_time(sorted.back())}});
  }
  const Json ms{{"field", "ms"},
                {"type", "quantitative"},
                {"title", "ms"},
                {"scale", {{"zero", false}, {"nice", false}, {"padding", 6}}},
                {"axis", {{"format", "~r"}, {"tickCount", 8}}}};
  Json color = arm_color(summary.arms);
  Json dash = arm_dash(summary.arms);
  for (Json* channel : {&color, &dash})
    (*channel)["legend"]["symbolSize"] = 500;  // long enough to tell the dashes apart
  Json facets = Json::array();
  for (const ArmRecord& arm : summary.arms) {
    if (!steps_of.contains(arm.id)) continue;
    facets.push_back(
        {{"title", {{"text", arm.label}, {"fontSize", 11}, {"fontWeight", "normal"}, {"offset", 3}}},
         {"width", 540},
         {"height", 62},
         {"data", {{"name", "sequence"}}},
         {"transform",
          {{{"filter",
             fmt::format("datum.arm === {}", Json(arm.label).dump(-1, ' ', false, Json::error_handler_t::replace))}}}},
         {"mark", {{"type", "point"}, {"filled", true}, {"shape", "circle"}, {"size", 9}, {"opacity", 0.85}}},
         {"encoding",
          {{"x",
            {{"field", "step"},
             {"type", "quantitative"},
             {"title", nullptr},
             {"scale", {{"nice", false}}},
             {"axis", {{"grid", false}, {"format", "d"}, {"labels", false}}}}},
           {"y",
            {{"field", "ms"},
             {"type", "quantitative"},
             {"title", "ms"},
             {"scale", {{"zero", false}, {"nice", false}, {"padding", 6}}},
             {"axis", {{"tickCount", 3}, {"format", "~r"}}}}},
           {"color",
            {{"condition", {{"test", "datum.block === 'even'"}, {"value", "#0072B2"}}}, {"value", "#E69F00"}}}}}});
  }
  if (!facets.empty()) {
    Json& x = facets.back()["encoding"]["x"];
    x["title"] = "step, in the order in which they ran";
    x["axis"]["labels"] = true;
  }
  Figure figure{
      .title = fmt::format("Single steps in {}: {}", cell, rows.setting),
      .caption = fmt::format("Left: the share of steps that took at most so long. Right: the steps one by one, blocks "
                             "in alternating colours, so that drift and warm-up show. {} is the largest cell "
                             "that most arms ran; at most {} quantiles and {} points of an arm are drawn.",
                             cell, kMostQuantiles, points_of_an_arm),
      .spec = start_spec(fmt::format("Single steps in {}: {}", cell, rows.setting)),
      .data = std::move(table)};
  figure.spec["datasets"] = {{"distribution", distribution}, {"sequence", sequence}};
  figure.spec["hconcat"] = {Json{{"width", 400},
                                 {"height", 260},
                                 {"data", {{"name", "distribution"}}},
                                 {"mark", {{"type", "line"}, {"interpolate", "step-after"}, {"strokeWidth", 1.8}}},
                                 {"encoding",
                                  {{"x", ms},
                                   {"y",
                                    {{"field", "share"},
                                     {"type", "quantitative"},
                                     {"title", "share of steps"},
                                     {"axis", {{"format", ".0%"}, {"tickCount", 5}}}}},
                                   {"color", color},
                                   {"strokeDash", dash}}}},
                            Json{{"vconcat", facets}, {"spacing", 8}}};
  return figure;
}

}  // namespace decodelab
