// Latency curves: a panel per batch size with the bound of the machine, and the paired ratios beneath.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/curves.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCurveHeight = 230;
constexpr int kRatioHeight = 120;
constexpr std::size_t kMostLaunchPoints = 500;  // above, points of single launches cost more of the page than they show
constexpr double kDodgeOctaves = 0.07;          // sideways distance of two arms' intervals
constexpr double kSmoothedShare = 0.5;          // of an arm's points, that each value of its smoothed line is fitted to
constexpr std::size_t kFewestSmoothed = 5;  // lengths; a local regression of fewer says nothing that its points do not
// An axis shows a band up to this factor beyond the mean; wider ones are cut.
constexpr double kFrameOfBands = 1.5;

struct Context {
  const FigureInput& input;
  const PhaseWords& words;
  std::vector<double> lengths;
  bool with_ratios = false;
};

double dodge(const Context& context, const SummaryRow& row) {
  const auto& arms = context.input.arms;
  const auto found = std::ranges::find(arms, row.arm.id, &ArmRecord::id);
  const auto index = static_cast<double>(found - arms.begin());
  return std::exp2(kDodgeOctaves * (index - static_cast<double>(arms.size()) / 2));
}

// A cross at the foot of the panel for each row that has no time, one line per arm so that they do not cover each
// other.
Json failure_layers(const Context& context, const std::string& batch, const Json& x) {
  Json layers = Json::array();
  int y = kCurveHeight - 7;
  for (const ArmRecord& arm : context.input.arms) {
    const auto fails = [&](const SummaryRow* row) {
      return row->arm.id == arm.id && !row->cell_mean_ns && row->status != RowStatus::planned;
    };
    if (std::ranges::none_of(context.input.rows.rows, fails)) {
      continue;
    }
    layers.push_back(figure_layer(
        "rows",
        fmt::format("{} && !isValid(datum.mean) && datum.status !== 'planned' && datum.arm === {}", batch,
                    quoted(arm.label)),
        {{"type", "text"}, {"text", "\xc3\x97"}, {"fontSize", 17}, {"fontWeight", "bold"}},
        {{"x", x},
         {"y", {{"value", y}}},
         {"color", arm_color(context.input.arms)},
         {"opacity", shown_opacity()},
         {"tooltip", {{{"field", "arm"}}, {{"field", "length"}}, {{"field", "status"}}, {{"field", "reason"}}}}}));
    y -= 12;
  }
  return layers;
}

// The band of the bound with dashed edges, beneath everything else.
void add_bound(Json& layers, const std::string& here, const Json& x, const Json& low, const Json& high) {
  const Json tooltip{{{"field", "length"}},
                     {{"field", "low"}, {"title", "bound from"}, {"format", ".4~r"}},
                     {{"field", "high"}, {"title", "bound to"}, {"format", ".4~r"}},
                     {{"field", "mib"}, {"title", "modelled MiB"}, {"format", ".4~r"}},
                     {{"field", "gflops"}, {"title", "modelled GFLOP"}, {"format", ".4~r"}},
                     {{"field", "from"}}};
  layers.push_back(figure_layer("bound", here,
                                {{"type", "area"}, {"opacity", 0.12}, {"color", kInkColor}, {"clip", true}},
                                {{"x", x}, {"y", low}, {"y2", {{"field", "high"}}}}));
  for (const Json& edge : {low, high}) {
    layers.push_back(figure_layer(
        "bound", here,
        {{"type", "line"}, {"strokeWidth", 1.2}, {"strokeDash", {5, 4}}, {"color", kInkColor}, {"clip", true}},
        {{"x", x}, {"y", edge}}));
  }
  layers.push_back(figure_layer("bound", here,
                                {{"type", "point"}, {"size", 40}, {"opacity", 0}, {"filled", true}, {"clip", true}},
                                {{"x", x}, {"y", high}, {"tooltip", tooltip}}));
}

// A line of each arm by local regression over the logarithm of the length, which the eye may follow between the points.
Json smooth_layer(const std::string& timed, const Json& x, const Json& y, const Json& color) {
  Json layer =
      figure_layer("rows", timed, {{"type", "line"}, {"strokeWidth", 5}, {"interpolate", "monotone"}, {"clip", true}},
                   {{"x", x}, {"y", y}, {"color", color}, {"opacity", shown_opacity(0.3)}});
  for (Json step : {Json{{"calculate", "log(datum.x)"}, {"as", "octaves"}},
                    Json{{"loess", "mean"}, {"on", "octaves"}, {"groupby", {"arm"}}, {"bandwidth", kSmoothedShare}},
                    Json{{"calculate", "exp(datum.octaves)"}, {"as", "x"}}}) {
    layer["transform"].push_back(std::move(step));
  }
  return layer;
}

// Returns the range of times in one panel, in its unit.
TimeRange range_of(const Context& context, std::int64_t batch) {
  TimeRange range;
  for (const SummaryRow* row : context.input.rows.rows) {
    if (!row->cell_mean_ns || row->cell.batch != batch) {
      continue;
    }
    const double mean_ns = *row->cell_mean_ns;
    range.add(mean_ns / context.words.unit_ns);
    if (const auto& band = row->cell_mean_interval_ns) {
      range.add(std::max(band->low, mean_ns / kFrameOfBands) / context.words.unit_ns);
      range.add(std::min(band->high, mean_ns * kFrameOfBands) / context.words.unit_ns);
    }
    if (const auto bound = context.input.bounds.find(row->cell.id); bound != context.input.bounds.end()) {
      range.add(bound->second.low_ns / context.words.unit_ns);
    }
  }
  if (range.empty()) {
    range = {0.5, 1};  // every step took 0 ns by its clock
  }
  return range;
}

Json curve_view(const Context& context, std::int64_t batch, int width) {
  const std::string here = fmt::format("datum.batch === {}", batch);
  const std::string timed = here + " && isValid(datum.mean)";
  const auto& arms = context.input.arms;
  const Json x = length_axis("x", context.lengths, context.with_ratios ? "" : context.words.length);
  const Json color = arm_color(arms);
  const TimeRange range = range_of(context, batch).padded();
  const auto y = [&](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", context.words.unit},
                {"scale", switched_scale(range.low, range.high)},
                {"axis", {{"values", switched_ticks(range.low, range.high)}, {"format", "~r"}}}};
  };
  Json layers = Json::array();
  if (!context.input.bounds.empty()) {
    add_bound(layers, here, x, y("low"), y("high"));
  }
  std::set<double> lengths;
  for (const SummaryRow* row : context.input.rows.rows) {
    if (row->cell.batch == batch) {
      lengths.insert(row->plotted_length());
    }
  }
  // An area needs two lengths; a single one has its interval as a line.
  const Json band = lengths.size() > 1 ? Json{{"type", "area"}, {"clip", true}}
                                       : Json{{"type", "rule"}, {"strokeWidth", 1.6}, {"clip", true}};
  layers.push_back(figure_layer("rows", timed + " && isValid(datum.low)", band,
                                {{"x", x},
                                 {"y", y("low")},
                                 {"y2", {{"field", "high"}}},
                                 {"color", color},
                                 {"opacity", shown_opacity(lengths.size() > 1 ? 0.16 : 1)}}));
  if (context.input.smooth && lengths.size() >= kFewestSmoothed) {
    layers.push_back(smooth_layer(timed, x, y("mean"), color));
  }
  layers.push_back(figure_layer(
      "rows", timed, {{"type", "line"}, {"strokeWidth", 1.8}},
      {{"x", x}, {"y", y("mean")}, {"color", color}, {"strokeDash", arm_dash(arms)}, {"opacity", shown_opacity()}}));
  layers.push_back(figure_layer("launches", here,
                                {{"type", "point"}, {"filled", true}, {"shape", "circle"}, {"size", 7}, {"clip", true}},
                                {{"x", x}, {"y", y("mean")}, {"color", color}, {"opacity", shown_opacity(0.45)}}));
  Json points = figure_layer("rows", timed, {{"type", "point"}, {"filled", true}, {"size", 42}},
                             {{"x", x},
                              {"y", y("mean")},
                              {"color", color},
                              {"shape", arm_shape(arms)},
                              {"opacity", shown_opacity()},
                              {"tooltip", curve_tooltip(context.words)}});
  points["name"] = fmt::format("curves_{}", batch);
  points["params"] = {zoom_parameter(fmt::format("zoom_{}", batch))};
  layers.push_back(std::move(points));
  for (Json& failure : failure_layers(context, here, x)) {
    layers.push_back(std::move(failure));
  }
  return {{"title", fmt::format("batch {}", batch)}, {"width", width}, {"height", kCurveHeight}, {"layer", layers}};
}

Json ratio_view(const Context& context, std::int64_t batch, int width) {
  const std::string here = fmt::format("datum.batch === {} && isValid(datum.ratio)", batch);
  const Json x = length_axis("x_ratio", context.lengths, context.words.length);
  const Json color = arm_color(context.input.arms);
  TimeRange range;
  range.add(1);
  for (const SummaryRow* row : context.input.rows.rows) {
    if (row->cell.batch != batch || !row->time_ratio) {
      continue;
    }
    for (const auto& value : {row->time_ratio, row->time_ratio_low, row->time_ratio_high}) {
      if (value) {
        range.add(std::clamp(*value, *row->time_ratio / kFrameOfBands, *row->time_ratio * kFrameOfBands));
      }
    }
  }
  const auto y = [&](const char* field) {
    return Json{
        {"field", field},
        {"type", "quantitative"},
        {"title", "time ratio"},
        {"scale",
         {{"domain", {shortened(range.low), shortened(range.high)}}, {"zero", false}, {"padding", 8}, {"nice", false}}},
        {"axis", {{"tickCount", 5}}}};
  };
  return {{"width", width},
          {"height", kRatioHeight},
          {"layer",
           {Json{{"data", {{"values", {Json::object()}}}},
                 {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", kInkColor}}},
                 {"encoding", {{"y", {{"datum", 1}}}}}},
            figure_layer("rows", here + " && isValid(datum.ratio_low)",
                         {{"type", "rule"}, {"strokeWidth", 1.6}, {"clip", true}},
                         {{"x", x},
                          {"y", y("ratio_low")},
                          {"y2", {{"field", "ratio_high"}}},
                          {"color", color},
                          {"opacity", shown_opacity()}}),
            figure_layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 38}},
                         {{"x", x},
                          {"y", y("ratio")},
                          {"color", color},
                          {"shape", arm_shape(context.input.arms)},
                          {"opacity", shown_opacity()},
                          {"tooltip", curve_tooltip(context.words)}})}}};
}

std::string share_of_bound(const SummaryRow& row) {
  if (!row.bound_share) {
    return "";
  }
  if (!row.bound_share_low) {
    return format_percent(*row.bound_share);
  }
  return fmt::format("{:.0f} % [{:.0f}, {:.0f}]", 100 * *row.bound_share, 100 * *row.bound_share_low,
                     100 * *row.bound_share_high);
}

Table data_table(const Context& context) {
  const bool bounds = !context.input.bounds.empty();
  Table table{.title = "Data of the figure: mean of a step over launches, unpaired",
              .columns = {{"Cell"},
                          {"Arm"},
                          {"Launches", true},
                          {"Steps", true},
                          {"Mean", true},
                          {"Low", true},
                          {"High", true},
                          {"Time ratio", true}},
              .rows = {},
              .notes = {}};
  if (bounds) {
    table.columns.insert(table.columns.end(), {{"Bound seen", true}, {"Of bound", true}});
  }
  for (const SummaryRow* row : context.input.rows.rows) {
    if (!row->cell_mean_ns) {
      continue;
    }
    const auto& interval = row->cell_mean_interval_ns;
    TableRow line{row->run_id,
                  row->cell.id,
                  {cell_label(row->cell), row->arm.label, std::to_string(row->launches), std::to_string(row->steps),
                   format_time(*row->cell_mean_ns), interval ? format_time(interval->low) : "",
                   interval ? format_time(interval->high) : "", format_ratio(*row)}};
    if (bounds) {
      const auto bound = context.input.bounds.find(row->cell.id);
      line.fields.push_back(
          bound == context.input.bounds.end()
              ? ""
              : fmt::format("{} to {}", format_time(bound->second.low_ns), format_time(bound->second.high_ns)));
      line.fields.push_back(share_of_bound(*row));
    }
    table.rows.push_back(std::move(line));
  }
  return table;
}

Json datasets_of(const Context& context) {
  Json rows = Json::array();
  Json launches = Json::array();
  Json bounds = Json::array();
  std::set<std::int64_t> cells;
  std::size_t points = 0;
  for (const SummaryRow* row : context.input.rows.rows) {
    points += row->launch_means_ns.size();
  }
  for (const SummaryRow* row : context.input.rows.rows) {
    rows.push_back(curve_datum(*row, context.words));
    if (rows.back().contains("ratio")) {
      rows.back()["x_ratio"] = shortened(row->plotted_length() * dodge(context, *row));
    }
    const auto bound = context.input.bounds.find(row->cell.id);
    if (bound != context.input.bounds.end() && cells.insert(row->cell.id).second) {
      Json datum{{"batch", row->cell.batch},
                 {"length", row->cell.length},
                 {"x", shortened(row->plotted_length())},
                 {"low", shortened(bound->second.low_ns / context.words.unit_ns)},
                 {"high", shortened(bound->second.high_ns / context.words.unit_ns)},
                 {"from", bound->second.from_other_cells ? "speeds seen in other cells" : "rooflines in this cell"}};
      if (bound->second.bytes) {
        datum["mib"] = shortened(*bound->second.bytes / 0x1p20);
      }
      if (bound->second.flops) {
        datum["gflops"] = shortened(*bound->second.flops / 1e9);
      }
      bounds.push_back(std::move(datum));
    }
    if (points > kMostLaunchPoints || row->launches < 2) {
      continue;
    }
    for (const auto& [launch, ns] : row->launch_means_ns) {
      launches.push_back({{"arm", row->arm.label},
                          {"batch", row->cell.batch},
                          {"x", shortened(row->plotted_length())},
                          {"mean", shortened(ns / context.words.unit_ns)}});
    }
  }
  return {{"rows", rows}, {"launches", launches}, {"bound", bounds}};
}

Context context_of(const FigureInput& input) {
  const Phase phase = input.rows.rows.front()->cell.phase;
  return {.input = input,
          .words = words_of(phase),
          .lengths = plotted_lengths(input.rows),
          .with_ratios = has_ratios(input)};
}

std::string caption_of(const Context& context) {
  std::string text =
      "Large points: mean of a step over launches, at every length that was measured; small points: single launches. "
      "Bands are 95 % intervals of that mean, unpaired: they are wider than what the ratios resolve.";
  if (!context.input.bounds.empty()) {
    text +=
        " The grey band between dashed lines is the bound as the run saw it, lowest to highest launch: the slower of "
        "reading the "
        "cell's modelled bytes and of multiplying its modelled FLOPs; its tooltip says where it was taken.";
  }
  if (context.with_ratios) {
    text +=
        " Beneath, paired time ratios to the baseline with their intervals, set apart sideways; below the dashed line "
        "is faster.";
  }
  if (context.input.smooth) {
    text +=
        " Broad pale lines are local regressions over half of an arm's points (--smooth); no interval belongs to them.";
  }
  return text + " A cross at the foot marks a cell without times. " + kHowToUse;
}

}  // namespace

Figure latency_figure(const FigureInput& input) {
  const Context context = context_of(input);
  const auto batches = batches_of(input.rows);
  const bool wide = std::ranges::any_of(batches, [&](std::int64_t batch) { return range_of(context, batch).wide(); });
  Figure figure{.title = fmt::format("Latency: {}", input.rows.setting),
                .caption = caption_of(context),
                .spec = start_spec(fmt::format("Latency: {}", input.rows.setting)),
                .data = data_table(context)};
  add_logarithm_switch(figure.spec, wide);
  add_legend_toggle(figure.spec, "arm", fmt::format("curves_{}", batches.front()));
  figure.spec["datasets"] = datasets_of(context);
  const auto curves = [&](std::int64_t batch, int width) { return curve_view(context, batch, width); };
  const auto ratios = [&](std::int64_t batch, int width) { return ratio_view(context, batch, width); };
  figure.spec["vconcat"] =
      context.with_ratios ? panels_by_batch(batches, curves, ratios) : panels_by_batch(batches, curves);
  return figure;
}

}  // namespace decodelab
