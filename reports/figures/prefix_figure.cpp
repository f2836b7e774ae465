// What a prefix store is worth: time to first token over the share of each prompt that it holds.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "reports/figures/curves.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"
#include "reports/statistics/prefix_share.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHeight = 260;
constexpr std::size_t kColumns = 3;

struct Point {
  const SummaryRow* row = nullptr;
  double share = 0;
  std::string line;  ///< The arm without its share.
};

std::vector<Point> points_of(const FigureInput& input) {
  std::vector<Point> points;
  for (const SummaryRow* row : input.rows.rows) {
    const std::optional<double> share = prefix_share(row->arm.label);
    if (share && row->cell_mean_ns) {
      points.push_back({.row = row, .share = *share, .line = without_prefix_share(row->arm.label)});
    }
  }
  return points;
}

std::string panel_of(const SummaryRow& row) { return fmt::format("b{} p{}", row.cell.batch, row.cell.length); }

/// Arms that stand for lines, with a colour each.
std::vector<ArmRecord> lines_of(const std::vector<Point>& points) {
  std::vector<ArmRecord> lines;
  for (const Point& point : points) {
    if (std::ranges::find(lines, point.line, &ArmRecord::label) == lines.end()) {
      lines.push_back({.id = point.row->arm.id, .label = point.line});
    }
  }
  return lines;
}

Json panel(const std::vector<ArmRecord>& lines, const std::string& name, const PhaseWords& words, std::size_t index,
           int width) {
  const std::string here = fmt::format("datum.panel === {}", decodelab::quoted(name));
  const Json x{{"field", "share"},
               {"type", "quantitative"},
               {"title", "share of the prompt in the store"},
               {"axis", {{"format", "%"}}},
               {"scale", {{"domain", {0, 1}}}}};
  const Json y{{"field", "time"}, {"type", "quantitative"}, {"title", words.unit}, {"scale", {{"zero", true}}}};
  const Json color = arm_color(lines);
  Json points = figure_layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 40}},
                             {{"x", x},
                              {"y", y},
                              {"color", color},
                              {"shape", arm_shape(lines)},
                              {"opacity", shown_opacity()},
                              {"tooltip",
                               {{{"field", "arm"}},
                                {{"field", "share"}, {"title", "share"}},
                                {{"field", "time"}, {"title", words.unit}},
                                {{"field", "low"}, {"title", "from"}},
                                {{"field", "high"}, {"title", "to"}}}}});
  points["name"] = fmt::format("prefix_{}", index);
  return {{"title", name},
          {"width", width},
          {"height", kHeight},
          {"layer",
           {figure_layer(
                "rows", here, {{"type", "line"}, {"strokeWidth", 1.8}},
                {{"x", x}, {"y", y}, {"color", color}, {"strokeDash", arm_dash(lines)}, {"opacity", shown_opacity()}}),
            figure_layer("rows", here + " && isValid(datum.low)", {{"type", "rule"}, {"strokeWidth", 1.6}},
                         {{"x", x},
                          {"y", {{"field", "low"}, {"type", "quantitative"}}},
                          {"y2", {{"field", "high"}}},
                          {"color", color},
                          {"opacity", shown_opacity()}}),
            points}}};
}

}  // namespace

bool has_prefix_shares(const FigureInput& input) {
  std::set<double> shares;
  for (const Point& point : points_of(input)) {
    shares.insert(point.share);
  }
  return shares.size() > 1;
}

Figure prefix_figure(const FigureInput& input) {
  std::vector<Point> points = points_of(input);
  std::ranges::stable_sort(points, {}, &Point::share);
  const std::vector<ArmRecord> lines = lines_of(points);
  const PhaseWords& words = words_of(input.rows.rows.front()->cell.phase);
  Table table{.title = "Data of the figure",
              .columns = {{"Cell"}, {"Arm"}, {"Share in the store", true}, {words.unit, true}},
              .rows = {},
              .notes = {}};
  Json rows = Json::array();
  std::vector<std::string> panels;
  for (const Point& point : points) {
    const SummaryRow& row = *point.row;
    const std::string name = panel_of(row);
    if (std::ranges::find(panels, name) == panels.end()) {
      panels.push_back(name);
    }
    Json datum{{"arm", point.line},
               {"panel", name},
               {"share", point.share},
               {"time", shortened(*row.cell_mean_ns / words.unit_ns)}};
    if (row.cell_mean_interval_ns) {
      add_ends(datum, *row.cell_mean_interval_ns, words.unit_ns);
    }
    rows.push_back(std::move(datum));
    table.rows.push_back({.run_id = row.run_id,
                          .cell_id = row.cell.id,
                          .fields = {cell_label(row.cell), point.line, fmt::format("{}", point.share),
                                     fmt::format("{:.4g}", *row.cell_mean_ns / words.unit_ns)}});
  }
  const std::string title = fmt::format("What a prefix store is worth: {}", input.rows.setting);
  Figure figure{.title = title,
                .caption = fmt::format(
                    "A line per arm: the same prompts, of which a prefix store holds more and more. Rules are unpaired "
                    "95 % intervals over launches. {}",
                    kHowToUse),
                .spec = start_spec(title),
                .data = std::move(table)};
  add_legend_toggle(figure.spec, "arm", "prefix_0");
  figure.spec["datasets"] = {{"rows", rows}};
  const std::size_t columns = std::min(panels.size(), kColumns);
  const int width = kFigureWidth / static_cast<int>(columns) - kPanelGap;
  Json grid = Json::array();
  for (std::size_t first = 0; first < panels.size(); first += columns) {
    Json line = Json::array();
    for (std::size_t index = first; index < std::min(first + columns, panels.size()); ++index) {
      line.push_back(panel(lines, panels[index], words, index, width));
    }
    grid.push_back({{"hconcat", line}, {"spacing", kPanelGap}, {"bounds", "flush"}});
  }
  figure.spec["vconcat"] = grid;
  figure.spec["spacing"] = 24;
  return figure;
}

}  // namespace decodelab
