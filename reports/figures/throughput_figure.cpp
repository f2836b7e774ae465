// Throughput against latency, a point per batch size: what a larger batch buys, and what it costs each row.
#include <algorithm>
#include <cmath>
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

constexpr int kThroughputHeight = 240;
constexpr std::size_t kThroughputMostPanels = 3;
constexpr double kBeyond = 1.15;  // ticks may lie this far out, in the padding

// Shortest, middle and longest of the lengths at which some arm has two batch sizes: a single one is a point and no
// curve.
std::vector<std::int64_t> shown_lengths(const FigureInput& input) {
  std::map<std::int64_t, std::set<std::int64_t>> batches;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->cell_mean_ns && *row->cell_mean_ns > 0) {
      batches[row->cell.length].insert(row->cell.batch);
    }
  }
  std::vector<std::int64_t> lengths;
  for (const auto& [length, of_length] : batches) {
    if (of_length.size() > 1) {
      lengths.push_back(length);
    }
  }
  if (lengths.empty() && !batches.empty()) {
    lengths = {batches.begin()->first};
  }
  if (lengths.size() > kThroughputMostPanels) {
    lengths = {lengths.front(), lengths[lengths.size() / 2], lengths.back()};
  }
  return lengths;
}

// Returns the tokens that one step processes for all rows of the batch; a completion counts as one, since the rows of a
// run may end early.
double units_of(const CellRecord& cell) {
  const auto batch = static_cast<double>(cell.batch);
  return cell.phase == Phase::prefill ? batch * static_cast<double>(cell.length) : batch;
}

// Wider bands say only that there are too few launches, and would determine the scale.
bool is_narrow(const Interval& band, double mean_ns) { return band.low > mean_ns / 2; }

Json panel(const FigureInput& input, const PhaseWords& words, const std::string& rate, std::int64_t length, int width) {
  const std::string here = fmt::format("datum.length === {}", length);
  const auto& arms = input.arms;
  TimeRange times;
  TimeRange rates;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->cell.length != length || !row->cell_mean_ns || *row->cell_mean_ns <= 0) {
      continue;
    }
    times.add(*row->cell_mean_ns / words.unit_ns);
    rates.add(units_of(row->cell) / (*row->cell_mean_ns / 1e9));
    if (const auto& band = row->cell_mean_interval_ns; band && is_narrow(*band, *row->cell_mean_ns)) {
      times.add(band->low / words.unit_ns);
      times.add(band->high / words.unit_ns);
    }
  }
  const Json x{
      {"field", "ms"},
      {"type", "quantitative"},
      {"title", words.unit},
      {"scale",
       {{"type", "log"}, {"domain", {shortened(times.low), shortened(times.high)}}, {"nice", false}, {"padding", 24}}},
      {"axis",
       {{"values", enough_ticks(times.low / kBeyond, times.high * kBeyond)},
        {"grid", false},
        {"format", "~r"},
        {"labelOverlap", "greedy"}}}};
  const Json y{
      {"field", "rate"},
      {"type", "quantitative"},
      {"title", rate},
      {"scale",
       {{"type", "log"}, {"domain", {shortened(rates.low), shortened(rates.high)}}, {"nice", false}, {"padding", 20}}},
      {"axis",
       {{"values", enough_ticks(rates.low / kBeyond, rates.high * kBeyond)},
        {"format", "~s"},
        {"labelOverlap", "greedy"}}}};
  const Json color = arm_color(arms);
  const Json tooltip{{{"field", "arm"}},
                     {{"field", "batch"}},
                     {{"field", "length"}},
                     {{"field", "ms"}, {"title", words.unit}, {"format", ".4~r"}},
                     {{"field", "rate"}, {"title", rate}, {"format", ".4~r"}},
                     {{"field", "launches"}},
                     {{"field", "steps"}}};
  const Json order{{"field", "batch"}, {"type", "quantitative"}};
  Json points = figure_layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 44}},
                             {{"x", x},
                              {"y", y},
                              {"color", color},
                              {"shape", arm_shape(arms)},
                              {"opacity", shown_opacity()},
                              {"tooltip", tooltip}});
  points["name"] = fmt::format("length_{}", length);
  return {{"title", fmt::format("length {}", length)},
          {"width", width},
          {"height", kThroughputHeight},
          {"layer",
           {figure_layer("rows", here, {{"type", "line"}, {"strokeWidth", 1.6}},
                         {{"x", x},
                          {"y", y},
                          {"color", color},
                          {"strokeDash", arm_dash(arms)},
                          {"order", order},
                          {"opacity", shown_opacity()}}),
            figure_layer("rows", here + " && isValid(datum.low)", {{"type", "rule"}, {"strokeWidth", 1.2}},
                         {{"x", {{"field", "low"}, {"type", "quantitative"}}},
                          {"x2", {{"field", "high"}}},
                          {"y", y},
                          {"color", color},
                          {"opacity", shown_opacity()}}),
            points,
            figure_layer("rows", here + " && datum.labelled",
                         {{"type", "text"}, {"dy", -10}, {"fontSize", 10.5}, {"color", kInkColor}},
                         {{"x", x}, {"y", y}, {"text", {{"field", "label"}}}})}}};
}

}  // namespace

Figure throughput_figure(const FigureInput& input) {
  const Phase phase = input.rows.rows.front()->cell.phase;
  const PhaseWords& words = words_of(phase);
  const std::string rate = phase == Phase::generate ? "completions per second" : "tokens per second";
  const auto lengths = shown_lengths(input);
  Json rows = Json::array();
  Table table{.title = "Data of the figure",
              .columns = {{"Cell"},
                          {"Arm"},
                          {"Mean", true},
                          {phase == Phase::generate ? "Completions / s" : "Tokens / s", true}},
              .rows = {},
              .notes = {}};
  // Batch sizes are written beside the points of the arm with most of them: the others' stand in the same order.
  std::string labelled;
  std::ptrdiff_t most = 0;
  for (const ArmRecord& arm : input.arms) {
    const auto points = std::ranges::count_if(input.rows.rows, [&](const SummaryRow* row) {
      return row->arm.id == arm.id && row->cell_mean_ns &&
             std::ranges::find(lengths, row->cell.length) != lengths.end();
    });
    if (points > most) {
      labelled = arm.label;
    }
    most = std::max(most, points);
  }
  for (const SummaryRow* row : input.rows.rows) {
    if (!row->cell_mean_ns || *row->cell_mean_ns <= 0 ||
        std::ranges::find(lengths, row->cell.length) == lengths.end()) {
      continue;
    }
    const double per_second = units_of(row->cell) / (*row->cell_mean_ns / 1e9);
    Json datum{{"arm", row->arm.label},
               {"batch", row->cell.batch},
               {"length", row->cell.length},
               {"ms", shortened(*row->cell_mean_ns / words.unit_ns)},
               {"rate", shortened(per_second)},
               {"launches", row->launches},
               {"steps", row->steps},
               {"labelled", row->arm.label == labelled},
               {"label", fmt::format("b{}", row->cell.batch)}};
    if (const auto& band = row->cell_mean_interval_ns; band && is_narrow(*band, *row->cell_mean_ns)) {
      datum["low"] = shortened(band->low / words.unit_ns);
      datum["high"] = shortened(band->high / words.unit_ns);
    }
    rows.push_back(std::move(datum));
    table.rows.push_back(
        {row->run_id,
         row->cell.id,
         {cell_label(row->cell), row->arm.label, format_time(*row->cell_mean_ns), fmt::format("{:.4g}", per_second)}});
  }
  Figure figure{.title = fmt::format("Throughput against latency: {}", input.rows.setting),
                .caption = fmt::format("A point per batch size (b1, b4, ...; named beside {}), at the shortest, a "
                                       "middle and the longest length with several; up and to the left is "
                                       "better. Tokens are those of all rows{}. Both axes are logarithmic; rules are "
                                       "unpaired 95 % intervals of the mean. {}",
                                       labelled, phase == Phase::prefill ? " of the prompt" : "", kHowToUse),
                .spec = start_spec(fmt::format("Throughput against latency: {}", input.rows.setting)),
                .data = std::move(table)};
  if (!lengths.empty()) {
    add_legend_toggle(figure.spec, "arm", fmt::format("length_{}", lengths.front()));
  }
  figure.spec["datasets"] = {{"rows", rows}};
  Json panels = Json::array();
  const int width = kFigureWidth / static_cast<int>(std::max<std::size_t>(1, lengths.size())) - kPanelGap;
  for (const std::int64_t length : lengths) {
    panels.push_back(panel(input, words, rate, length, width));
  }
  figure.spec["hconcat"] = panels;
  figure.spec["spacing"] = kPanelGap;
  figure.spec["bounds"] = "flush";
  return figure;
}

}  // namespace decodelab
