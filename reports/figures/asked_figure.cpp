// Times over a number that arms are asked for: the share of each prompt that a prefix store holds, or how many of the
// most probable tokens are told.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "reports/figures/curves.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/asked_number.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHeight = 260;
constexpr std::size_t kColumns = 3;

/// What arms differ in, and the words for it.
struct Asked {
  std::string_view setting;
  const char* name;   ///< Of the figure's parts.
  const char* field;  ///< Of its data.
  const char* axis;
  const char* column;
  const char* title;
  const char* caption;
  bool is_share;     ///< From 0 to 1.
  bool has_nothing;  ///< Arms that ask for nothing of it stand at 0.
};

constexpr Asked kPrefix{.setting = kPrefixSetting,
                        .name = "prefix",
                        .field = "share",
                        .axis = "share of the prompt in the store",
                        .column = "Share in the store",
                        .title = "What a prefix store is worth",
                        .caption = "A line per arm: the same prompts, of which a prefix store holds more and more.",
                        .is_share = true,
                        .has_nothing = false};
constexpr Asked kTopTokens{.setting = kTopTokensSetting,
                           .name = "top_tokens",
                           .field = "tokens",
                           .axis = "most probable tokens of each step",
                           .column = "Tokens told",
                           .title = "What the most probable tokens cost",
                           .caption =
                               "A line per arm: the same steps, of which more and more of the most probable tokens "
                               "are told. An arm that tells none stands at 0.",
                           .is_share = false,
                           .has_nothing = true};

struct Point {
  const SummaryRow* row = nullptr;
  double number = 0;
  std::string line;  ///< The arm without its number.
};

std::vector<Point> points_of(const Asked& asked, const FigureInput& input) {
  std::vector<Point> points;
  bool any = false;
  for (const SummaryRow* row : input.rows.rows) {
    const std::optional<double> number = asked_number(row->arm.label, asked.setting);
    any = any || number;
    if (row->cell_mean_ns && (number || asked.has_nothing)) {
      points.push_back(
          {.row = row, .number = number.value_or(0), .line = without_asked(row->arm.label, asked.setting)});
    }
  }
  return any ? points : std::vector<Point>();
}

std::string panel_of(const SummaryRow& row) {
  return fmt::format("b{} {}{}", row.cell.batch, row.cell.phase == Phase::decode ? 'd' : 'p', row.cell.length);
}

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

Json panel(const Asked& asked, const std::vector<ArmRecord>& lines, const std::string& name, const PhaseWords& words,
           std::size_t index, int width) {
  const std::string here = fmt::format("datum.panel === {}", decodelab::quoted(name));
  Json x{{"field", asked.field}, {"type", "quantitative"}, {"title", asked.axis}};
  if (asked.is_share) {
    x["axis"] = {{"format", "%"}};
    x["scale"] = {{"domain", {0, 1}}};
  }
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
                                {{"field", asked.field}, {"title", asked.field}},
                                {{"field", "time"}, {"title", words.unit}},
                                {{"field", "low"}, {"title", "from"}},
                                {{"field", "high"}, {"title", "to"}}}}});
  points["name"] = fmt::format("{}_{}", asked.name, index);
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

bool differ(const Asked& asked, const FigureInput& input) {
  std::set<double> numbers;
  for (const Point& point : points_of(asked, input)) {
    numbers.insert(point.number);
  }
  return numbers.size() > 1;
}

Figure draw(const Asked& asked, const FigureInput& input) {
  std::vector<Point> points = points_of(asked, input);
  std::ranges::stable_sort(points, {}, &Point::number);
  const std::vector<ArmRecord> lines = lines_of(points);
  const PhaseWords& words = words_of(input.rows.rows.front()->cell.phase);
  Table table{.title = "Data of the figure",
              .columns = {{"Cell"}, {"Arm"}, {asked.column, true}, {words.unit, true}},
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
               {asked.field, point.number},
               {"time", shortened(*row.cell_mean_ns / words.unit_ns)}};
    if (row.cell_mean_interval_ns) {
      add_ends(datum, *row.cell_mean_interval_ns, words.unit_ns);
    }
    rows.push_back(std::move(datum));
    table.rows.push_back({.run_id = row.run_id,
                          .cell_id = row.cell.id,
                          .fields = {cell_label(row.cell), point.line, fmt::format("{}", point.number),
                                     fmt::format("{:.4g}", *row.cell_mean_ns / words.unit_ns)}});
  }
  const std::string title = fmt::format("{}: {}", asked.title, input.rows.setting);
  Figure figure{
      .title = title,
      .caption = fmt::format("{} Rules are unpaired 95 % intervals over launches. {}", asked.caption, kHowToUse),
      .spec = start_spec(title),
      .data = std::move(table)};
  add_legend_toggle(figure.spec, "arm", fmt::format("{}_0", asked.name));
  figure.spec["datasets"] = {{"rows", rows}};
  const std::size_t columns = std::min(panels.size(), kColumns);
  const int width = kFigureWidth / static_cast<int>(columns) - kPanelGap;
  Json grid = Json::array();
  for (std::size_t first = 0; first < panels.size(); first += columns) {
    Json line = Json::array();
    for (std::size_t index = first; index < std::min(first + columns, panels.size()); ++index) {
      line.push_back(panel(asked, lines, panels[index], words, index, width));
    }
    grid.push_back({{"hconcat", line}, {"spacing", kPanelGap}, {"bounds", "flush"}});
  }
  figure.spec["vconcat"] = grid;
  figure.spec["spacing"] = 24;
  return figure;
}

}  // namespace

bool has_prefix_shares(const FigureInput& input) { return differ(kPrefix, input); }
Figure prefix_figure(const FigureInput& input) { return draw(kPrefix, input); }
bool has_top_tokens(const FigureInput& input) { return differ(kTopTokens, input); }
Figure top_tokens_figure(const FigureInput& input) { return draw(kTopTokens, input); }

}  // namespace decodelab
