// What batches do under load: tokens a second, time to first token and time between tokens over the requests that come.
#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "reports/figures/curves.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/serving.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLoadHeight = 220;
constexpr double kNsPerMs = 1e6;

/// One measure of a serving, and how it is drawn.
struct Measure {
  const char* field;
  const char* title;
  std::optional<MeanOfLaunches> Serving::* value;
  double unit;
};

constexpr Measure kMeasures[] = {
    {"tokens", "tokens per second", &Serving::tokens_per_second, 1},
    {"first", "ms to first token", &Serving::first_token_ns, kNsPerMs},
    {"between", "ms between tokens", &Serving::between_tokens_ns, kNsPerMs},
    {"good", "good requests per second", &Serving::good_requests_per_second, 1},
};

/// The measures that any serving has.
std::vector<Measure> measures_of(const std::vector<Serving>& servings) {
  std::vector<Measure> measures;
  std::ranges::copy_if(kMeasures, std::back_inserter(measures), [&](const Measure& measure) {
    return std::ranges::any_of(servings, [&](const Serving& serving) { return (serving.*measure.value).has_value(); });
  });
  return measures;
}

/// What the lines run over: rates where several were asked for, else batch sizes.
bool over_rates(const std::vector<Serving>& servings) {
  std::set<double> rates;
  for (const Serving& serving : servings) {
    if (serving.request_rate > 0) {
      rates.insert(serving.request_rate);
    }
  }
  return rates.size() > 1;
}

std::string batch_of(const SummaryRow& row) { return fmt::format("b{} p{}", row.cell.batch, row.cell.length); }

Json datum_of(const Serving& serving, bool rates) {
  const SummaryRow& row = *serving.row;
  Json datum{{"arm", row.arm.label},
             {"panel", rates ? batch_of(row) : fmt::format("p{}", row.cell.length)},
             {"x", rates ? serving.request_rate : static_cast<double>(row.cell.batch)}};
  for (const Measure& measure : kMeasures) {
    if (const auto& value = serving.*measure.value) {
      datum[measure.field] = shortened(value->mean / measure.unit);
      if (value->interval) {
        add_ends(datum, *value->interval, measure.unit, std::string(measure.field) + "_");
      }
    }
  }
  return datum;
}

Json panel(const FigureInput& input, const Measure& measure, const std::string& condition, const std::string& x_title,
           const std::string& name, int width) {
  const std::string field = measure.field;
  const std::string here = condition + fmt::format(" && isValid(datum.{})", field);
  const Json x{{"field", "x"}, {"type", "quantitative"}, {"title", x_title}, {"scale", {{"zero", false}}}};
  const Json y{{"field", field}, {"type", "quantitative"}, {"title", measure.title}, {"scale", {{"zero", true}}}};
  const Json color = arm_color(input.arms);
  Json points = figure_layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 40}},
                             {{"x", x},
                              {"y", y},
                              {"color", color},
                              {"shape", arm_shape(input.arms)},
                              {"opacity", shown_opacity()},
                              {"tooltip",
                               {{{"field", "arm"}},
                                {{"field", "x"}, {"title", x_title}},
                                {{"field", field}, {"title", measure.title}},
                                {{"field", field + "_low"}, {"title", "from"}},
                                {{"field", field + "_high"}, {"title", "to"}}}}});
  points["name"] = name;
  return {
      {"width", width},
      {"height", kLoadHeight},
      {"layer",
       {figure_layer(
            "rows", here, {{"type", "line"}, {"strokeWidth", 1.8}},
            {{"x", x}, {"y", y}, {"color", color}, {"strokeDash", arm_dash(input.arms)}, {"opacity", shown_opacity()}}),
        figure_layer("rows", here + fmt::format(" && isValid(datum.{}_low)", field),
                     {{"type", "rule"}, {"strokeWidth", 1.6}},
                     {{"x", x},
                      {"y", {{"field", field + "_low"}, {"type", "quantitative"}}},
                      {"y2", {{"field", field + "_high"}}},
                      {"color", color},
                      {"opacity", shown_opacity()}}),
        points}}};
}

}  // namespace

bool has_load(const FigureInput& input) {
  const std::vector<Serving> servings = servings_of(input.summary);
  std::set<std::int64_t> batches;
  for (const Serving& serving : servings) {
    batches.insert(serving.row->cell.batch);
  }
  return over_rates(servings) || batches.size() > 1;
}

Figure load_figure(const FigureInput& input) {
  std::vector<Serving> servings = servings_of(input.summary);
  const bool rates = over_rates(servings);
  std::erase_if(servings, [&](const Serving& serving) { return rates != (serving.request_rate > 0); });
  const std::vector<Measure> measures = measures_of(servings);
  Table table{.title = "Data of the figure",
              .columns = {{"Batch"}, {rates ? "Requests / s" : "Requests"}, {"Arm"}},
              .rows = {},
              .notes = {}};
  for (const Measure& measure : measures) {
    table.columns.push_back({measure.title, true});
  }
  Json rows = Json::array();
  std::vector<std::string> panels;  // batch and length where the lines run over rates, else the length
  for (const Serving& serving : servings) {
    Json datum = datum_of(serving, rates);
    const std::string& name = datum["panel"].get_ref<const std::string&>();
    if (std::ranges::find(panels, name) == panels.end()) {
      panels.push_back(name);
    }
    TableRow line{.run_id = serving.row->run_id,
                  .cell_id = serving.row->cell.id,
                  .fields = {batch_of(*serving.row), rates ? fmt::format("{}", serving.request_rate) : "at once",
                             serving.row->arm.label}};
    for (const Measure& measure : measures) {
      const auto& value = serving.*measure.value;
      line.fields.push_back(value ? fmt::format("{:.4g}", value->mean / measure.unit) : "");
    }
    table.rows.push_back(std::move(line));
    rows.push_back(std::move(datum));
  }
  const std::string title = fmt::format("Batches under load: {}", input.rows.setting);
  const std::string x_title = rates ? "requests per second" : "rows of the batch";
  Figure figure{.title = title,
                .caption = fmt::format("A line per arm. {} Rules are unpaired 95 % intervals over launches. {}",
                                       rates ? "Requests come at random at the rate below, the same for every arm: "
                                               "where a line of tokens per second stays flat, the batch is full."
                                             : "All requests come at once, four for each row of the batch.",
                                       kHowToUse),
                .spec = start_spec(title),
                .data = std::move(table)};
  add_legend_toggle(figure.spec, "arm", "load_0_tokens");
  figure.spec["datasets"] = {{"rows", rows}};
  const int width = kFigureWidth / static_cast<int>(measures.size()) - kPanelGap;
  Json lines = Json::array();
  for (std::size_t line = 0; line < panels.size(); ++line) {
    Json columns = Json::array();
    for (const Measure& measure : measures) {
      Json view = panel(input, measure, fmt::format("datum.panel === {}", decodelab::quoted(panels[line])), x_title,
                        fmt::format("load_{}_{}", line, measure.field), width);
      if (panels.size() > 1) {
        view["title"] = panels[line];
      }
      columns.push_back(std::move(view));
    }
    lines.push_back({{"hconcat", columns}, {"spacing", kPanelGap}, {"bounds", "flush"}});
  }
  figure.spec["vconcat"] = lines;
  figure.spec["spacing"] = 24;
  return figure;
}

}  // namespace decodelab
