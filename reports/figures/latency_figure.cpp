// Latency curves: a panel per batch size with the paired ratios and the peak memory beneath.
#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "reports/figures/figure.h"
#include "reports/figures/figure_style.h"
#include "reports/page/format.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCurveHeight = 230;
constexpr int kRatioHeight = 120;
constexpr int kMemoryHeight = 90;
constexpr std::size_t kMostColumns = 3;
constexpr int kFigureWidth = 1090;  // of all panels of a line, in the page's column
constexpr int kAxisWidth = 64;      // left of a panel
constexpr double kLogarithmicFrom =
    8;  // where the largest value is this often the smallest, a linear axis hides the small ones
constexpr std::size_t kMostLaunchPoints = 500;  // above, points of single launches cost more of the page than they show
constexpr double kDodgeOctaves = 0.07;          // sideways distance of two arms' intervals

struct Context {
  const RunSummary& summary;
  const FigureRows& rows;
  double unit_ns = 1e6;
  std::string time_title;
  std::string length_title;
  std::vector<double> lengths;
  bool with_ratios = false;
  bool with_memory = false;
};

double dodge(const Context& context, const SummaryRow& row) {
  double index = 0;
  for (std::size_t i = 0; i < context.summary.arms.size(); ++i) {
    if (context.summary.arms[i].id == row.arm.id) index = static_cast<double>(i);
  }
  return std::exp2(kDodgeOctaves * (index - static_cast<double>(context.summary.arms.size()) / 2));
}

// Fields without a value are left out: a page has hundreds of these rows, twice.
Json row_datum(const Context& context, const SummaryRow& row) {
  Json datum{{"cell", row.cell.id},
             {"arm", row.arm.label},
             {"batch", row.cell.batch},
             {"length", row.cell.length},
             {"x", shortened(row.plotted_length())}};
  const auto set = [&](const char* key, const std::optional<double>& value, double unit = 1) {
    if (value) datum[key] = shortened(*value / unit);
  };
  set("mean", row.cell_mean_ns, context.unit_ns);
  if (const auto& interval = row.cell_mean_interval_ns) {
    set("low", std::max(interval->low, 0.0), context.unit_ns);
    set("high", interval->high, context.unit_ns);
  }
  if (row.time_ratio && !row.arm.baseline) {
    set("x_ratio", row.plotted_length() * dodge(context, row));
    set("ratio", row.time_ratio);
    set("ratio_low", row.time_ratio_low);
    set("ratio_high", row.time_ratio_high);
  }
  if (row.peak_bytes) set("peak_mib", static_cast<double>(*row.peak_bytes), 0x1p20);
  if (row.status != RowStatus::ok) {
    datum["status"] = to_string(row.status);
    datum["reason"] = row.reason;
  }
  return datum;
}

Json filtered(const std::string& dataset, const std::string& condition) {
  return {{"data", {{"name", dataset}}}, {"transform", {{{"filter", condition}}}}};
}

Json layer(const std::string& dataset, const std::string& condition, Json mark, Json encoding) {
  Json view = filtered(dataset, condition);
  view["mark"] = std::move(mark);
  view["encoding"] = std::move(encoding);
  return view;
}

Json tooltip() {
  return {{{"field", "arm"}},
          {{"field", "length"}},
          {{"field", "mean"}, {"title", "mean"}, {"format", ".4~r"}},
          {{"field", "low"}, {"format", ".4~r"}},
          {{"field", "high"}, {"format", ".4~r"}},
          {{"field", "ratio"}, {"title", "time ratio"}, {"format", ".4f"}},
          {{"field", "ratio_low"}, {"format", ".4f"}},
          {{"field", "ratio_high"}, {"format", ".4f"}},
          {{"field", "peak_mib"}, {"title", "peak MiB"}, {"format", ".4~r"}}};
}

std::vector<const SummaryRow*> rows_of_batch(const Context& context, std::int64_t batch) {
  std::vector<const SummaryRow*> rows;
  for (const SummaryRow* row : context.rows.rows) {
    if (row->cell.batch == batch) rows.push_back(row);
  }
  return rows;
}

// Scale and ticks of a latency axis: logarithmic where a linear one would hide the small values.
Json time_axis(const Context& context, const std::vector<const SummaryRow*>& rows) {
  double low = INFINITY;
  double high = 0;
  for (const SummaryRow* row : rows) {
    if (!row->cell_mean_ns) continue;
    low = std::min(low, *row->cell_mean_ns / context.unit_ns);
    high = std::max(high, *row->cell_mean_ns / context.unit_ns);
  }
  if (high > kLogarithmicFrom * low && low > 0) {
    return {{"scale", {{"type", "log"}, {"nice", false}, {"padding", 12}}},
            {"axis", {{"values", logarithmic_ticks(low, high)}, {"format", "~r"}}}};
  }
  return {{"scale", {{"zero", false}, {"nice", false}, {"padding", 14}}},
          {"axis", {{"tickCount", 6}, {"format", "~r"}}}};
}

// A cross at the foot of the panel for each row that has no time, one line per arm so that they do not cover each other.
Json failure_layers(const Context& context, const std::string& batch, const Json& x) {
  Json layers = Json::array();
  int y = kCurveHeight - 7;
  for (const ArmRecord& arm : context.summary.arms) {
    const auto fails = [&](const SummaryRow* row) {
      return row->arm.id == arm.id && !row->cell_mean_ns && row->status != RowStatus::planned;
    };
    if (std::none_of(context.rows.rows.begin(), context.rows.rows.end(), fails)) continue;
    layers.push_back(layer(
        "rows",
        fmt::format("{} && !isValid(datum.mean) && datum.status !== 'planned' && datum.arm === {}", batch,
                    Json(arm.label).dump(-1, ' ', false, Json::error_handler_t::replace)),
        {{"type", "text"}, {"text", "\xc3\x97"}, {"fontSize", 17}, {"fontWeight", "bold"}},
        {{"x", x},
         {"y", {{"value", y}}},
         {"color", arm_color(context.summary.arms)},
         {"tooltip", {{{"field", "arm"}}, {{"field", "length"}}, {{"field", "status"}}, {{"field", "reason"}}}}}));
    y -= 12;
  }
  return layers;
}

Json curve_view(const Context& context, std::int64_t batch, int width) {
  const std::string here = fmt::format("datum.batch === {}", batch);
  const std::string timed = here + " && isValid(datum.mean)";
  const auto rows = rows_of_batch(context, batch);
  const Json x =
      length_axis("x", context.lengths, context.with_ratios || context.with_memory ? "" : context.length_title);
  const Json color = arm_color(context.summary.arms);
  Json time{{"type", "quantitative"}, {"title", context.time_title}};
  time.update(time_axis(context, rows));
  const auto y = [&time](const char* field) {
    Json channel = time;
    channel["field"] = field;
    return channel;
  };
  Json layers = Json::array();
  layers.push_back(layer("rows", timed + " && isValid(datum.low)",
                         {{"type", "area"}, {"opacity", 0.16}, {"line", false}},
                         {{"x", x}, {"y", y("low")}, {"y2", {{"field", "high"}}}, {"color", color}}));
  // An area needs two lengths; a single one has its interval as a line.
  if (std::all_of(rows.begin(), rows.end(),
                  [&](const SummaryRow* row) { return row->cell.length == rows.front()->cell.length; })) {
    layers.push_back(layer("rows", timed + " && isValid(datum.low)", {{"type", "rule"}, {"strokeWidth", 1.6}},
                           {{"x", x}, {"y", y("low")}, {"y2", {{"field", "high"}}}, {"color", color}}));
  }
  layers.push_back(
      layer("rows", timed, {{"type", "line"}, {"strokeWidth", 1.8}},
            {{"x", x}, {"y", y("mean")}, {"color", color}, {"strokeDash", arm_dash(context.summary.arms)}}));
  layers.push_back(layer("launches", here,
                         {{"type", "point"}, {"filled", true}, {"shape", "circle"}, {"size", 7}, {"opacity", 0.45}},
                         {{"x", x}, {"y", y("mean")}, {"color", color}}));
  layers.push_back(layer("rows", timed, {{"type", "point"}, {"filled", true}, {"size", 42}, {"opacity", 1}},
                         {{"x", x},
                          {"y", y("mean")},
                          {"color", color},
                          {"shape", arm_shape(context.summary.arms)},
                          {"tooltip", tooltip()}}));
  for (Json& failure : failure_layers(context, here, x)) layers.push_back(std::move(failure));
  return {{"title", fmt::format("batch {}", batch)}, {"width", width}, {"height", kCurveHeight}, {"layer", layers}};
}

Json ratio_view(const Context& context, std::int64_t batch, int width) {
  const std::string here = fmt::format("datum.batch === {} && isValid(datum.ratio)", batch);
  const Json x = length_axis("x_ratio", context.lengths, context.with_memory ? "" : context.length_title);
  const Json color = arm_color(context.summary.arms);
  const auto y = [](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", "time ratio"},
                {"scale", {{"zero", false}, {"padding", 8}, {"nice", false}}},
                {"axis", {{"tickCount", 5}}}};
  };
  return {{"width", width},
          {"height", kRatioHeight},
          {"layer",
           {Json{{"data", {{"values", {Json::object()}}}},
                 {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", kInkColor}}},
                 {"encoding", {{"y", {{"datum", 1}}}}}},
            layer("rows", here + " && isValid(datum.ratio_low)", {{"type", "rule"}, {"strokeWidth", 1.6}},
                  {{"x", x}, {"y", y("ratio_low")}, {"y2", {{"field", "ratio_high"}}}, {"color", color}}),
            layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 38}, {"opacity", 1}},
                  {{"x", x},
                   {"y", y("ratio")},
                   {"color", color},
                   {"shape", arm_shape(context.summary.arms)},
                   {"tooltip", tooltip()}})}}};
}

Json memory_view(const Context& context, std::int64_t batch, int width) {
  const std::string here = fmt::format("datum.batch === {} && isValid(datum.peak_mib)", batch);
  const Json x = length_axis("x", context.lengths, context.length_title);
  const Json color = arm_color(context.summary.arms);
  const Json y{{"field", "peak_mib"},
               {"type", "quantitative"},
               {"title", "peak MiB"},
               {"scale", {{"zero", true}}},
               {"axis", {{"tickCount", 4}, {"format", "~r"}}}};
  return {{"width", width},
          {"height", kMemoryHeight},
          {"layer",
           {layer("rows", here, {{"type", "line"}, {"strokeWidth", 1.6}},
                  {{"x", x}, {"y", y}, {"color", color}, {"strokeDash", arm_dash(context.summary.arms)}}),
            layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 26}, {"opacity", 1}},
                  {{"x", x},
                   {"y", y},
                   {"color", color},
                   {"shape", arm_shape(context.summary.arms)},
                   {"tooltip", tooltip()}})}}};
}

// The same view for some batches side by side.
Json panel_line(const Context& context, std::span<const std::int64_t> batches, int width,
                Json (*view)(const Context&, std::int64_t, int)) {
  Json views = Json::array();
  for (const std::int64_t batch : batches) views.push_back(view(context, batch, width));
  return {{"hconcat", views},
          {"spacing", kAxisWidth},
          {"bounds", "flush"}};  // flush: labels of axes do not push panels out of line
}

Table data_table(const FigureRows& rows) {
  Table table{
      .title = "Data of the figure: mean of a step over launches, unpaired",
      .columns =
          {{"Cell"}, {"Arm"}, {"Mean", true}, {"Low", true}, {"High", true}, {"Time ratio", true}, {"Peak", true}},
      .rows = {},
      .notes = {}};
  for (const SummaryRow* row : rows.rows) {
    if (!row->cell_mean_ns) continue;
    const auto& interval = row->cell_mean_interval_ns;
    table.rows.push_back({row->run_id,
                          row->cell.id,
                          {cell_label(row->cell), row->arm.label, format_time(*row->cell_mean_ns),
                           interval ? format_time(interval->low) : "", interval ? format_time(interval->high) : "",
                           format_ratio(*row), row->peak_bytes ? format_bytes(*row->peak_bytes) : ""}});
  }
  return table;
}

Json datasets_of(const Context& context) {
  Json rows = Json::array();
  Json launches = Json::array();
  std::size_t points = 0;
  for (const SummaryRow* row : context.rows.rows) points += row->launch_means_ns.size();
  for (const SummaryRow* row : context.rows.rows) {
    rows.push_back(row_datum(context, *row));
    if (points > kMostLaunchPoints || row->launches < 2) continue;
    for (const auto& [launch, ns] : row->launch_means_ns) {
      launches.push_back({{"arm", row->arm.label},
                          {"batch", row->cell.batch},
                          {"x", shortened(row->plotted_length())},
                          {"mean", shortened(ns / context.unit_ns)}});
    }
  }
  return {{"rows", rows}, {"launches", launches}};
}

Context context_of(const RunSummary& summary, const FigureRows& rows) {
  const std::string& phase = rows.rows.front()->cell.phase;
  Context context{.summary = summary,
                  .rows = rows,
                  .unit_ns = phase == "generate" ? 1e9 : 1e6,
                  .time_title = phase == "generate"  ? "s per completion"
                                : phase == "prefill" ? "ms per prefill"
                                                     : "ms per step",
                  .length_title = phase == "decode" ? "keys held (tokens)" : "prompt (tokens)",
                  .lengths = {}};
  for (const SummaryRow* row : rows.rows) {
    context.lengths.push_back(row->plotted_length());
    context.with_ratios = context.with_ratios || (row->time_ratio && !row->arm.baseline);
    context.with_memory = context.with_memory || row->peak_bytes;
  }
  return context;
}

}  // namespace

Figure latency_figure(const FigureInput& input) {
  const auto& [summary, run_data, rows] = input;
  const Context context = context_of(summary, rows);
  std::vector<std::int64_t> batches;
  for (const SummaryRow* row : rows.rows) batches.push_back(row->cell.batch);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  const std::size_t columns = std::min(batches.size(), kMostColumns);
  const int width = kFigureWidth / static_cast<int>(columns) - kAxisWidth;
  Json lines = Json::array();
  for (std::size_t first = 0; first < batches.size(); first += columns) {
    const std::span<const std::int64_t> line(batches.begin() + static_cast<std::ptrdiff_t>(first),
                                             std::min(columns, batches.size() - first));
    lines.push_back(panel_line(context, line, width, curve_view));
    if (context.with_ratios) lines.push_back(panel_line(context, line, width, ratio_view));
    if (context.with_memory) lines.push_back(panel_line(context, line, width, memory_view));
  }
  Figure figure{
      .title = fmt::format("Latency: {}", rows.setting),
      .caption = fmt::format(
          "Large points: mean of a step over launches, at every length that was measured; small points: single "
          "launches. Bands are 95 % intervals of that mean, "
          "unpaired: they are wider than what the ratios resolve.{}{} A cross at the foot marks a cell without times.",
          context.with_ratios
              ? " Beneath, paired time ratios to the baseline with their intervals, set apart sideways; "
                "below the dashed line is faster."
              : "",
          context.with_memory ? " At the bottom, the most bytes held in a step above weights and cache." : ""),
      .spec = start_spec(fmt::format("Latency: {}", rows.setting)),
      .data = data_table(rows)};
  figure.spec["datasets"] = datasets_of(context);
  figure.spec["vconcat"] = lines;
  return figure;
}

}  // namespace decodelab
