// Time against loss: an arm a point, and the arms that no other beats in both.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/curves.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"
#include "reports/statistics/quality.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLossHeight = 260;
/// Divergences below it are rounding of fp32, and are drawn there: a logarithmic axis has no zero.
constexpr double kLeastDivergence = 1e-8;

bool has_both(const SummaryRow& row) {
  return row.quality && row.quality->reason.empty() && row.cell_mean_ns && *row.cell_mean_ns > 0;
}

double drawn(double divergence) { return std::max(divergence, kLeastDivergence); }

/// Returns whether no other arm of the cell is at least as fast and as near, and better in one of both.
bool is_best(const SummaryRow& row, const FigureInput& input) {
  return std::ranges::none_of(input.rows.rows, [&](const SummaryRow* other) {
    if (other->cell.id != row.cell.id || other->arm.id == row.arm.id || !has_both(*other)) {
      return false;
    }
    const double time = *other->cell_mean_ns / *row.cell_mean_ns;
    const double loss = drawn(other->quality->kl_divergence) / drawn(row.quality->kl_divergence);
    return time <= 1 && loss <= 1 && (time < 1 || loss < 1);
  });
}

Json power_ticks(double low, double high) {
  Json ticks = Json::array();
  for (int power = static_cast<int>(std::floor(std::log10(low)));
       power <= static_cast<int>(std::ceil(std::log10(high))); ++power) {
    ticks.push_back(std::pow(10.0, power));
  }
  return ticks;
}

Json loss_view(const FigureInput& input, std::int64_t batch, int width) {
  const PhaseWords& words = words_of(input.rows.rows.front()->cell.phase);
  const std::string here = fmt::format("datum.batch === {}", batch);
  TimeRange times;
  TimeRange losses;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->cell.batch == batch && has_both(*row)) {
      times.add(*row->cell_mean_ns / words.unit_ns);
      losses.add(drawn(row->quality->kl_divergence));
    }
  }
  const Json x{{"field", "time"},
               {"type", "quantitative"},
               {"title", words.unit},
               {"scale", {{"domain", {0, shortened(1.1 * times.high)}}, {"nice", false}}},
               {"axis", {{"tickCount", 6}, {"format", "~r"}}}};
  const double low = losses.low / 3;
  const double high = losses.high * 3;
  const auto y = [&](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", "KL divergence from fp32, nats"},
                {"scale", {{"type", "log"}, {"domain", {shortened(low), shortened(high)}}, {"nice", false}}},
                {"axis", {{"values", power_ticks(low, high)}, {"format", "~e"}}}};
  };
  const Json color = arm_color(input.arms);
  const Json tooltip{{{"field", "arm"}},
                     {{"field", "length"}},
                     {{"field", "time"}, {"title", words.unit}, {"format", ".4~r"}},
                     {{"field", "kl"}, {"title", "KL divergence"}, {"format", ".3~g"}},
                     {{"field", "perplexity"}, {"title", "perplexity over fp32's"}, {"format", ".4~r"}},
                     {{"field", "weights"}}};
  Json points = figure_layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 70}},
                             {{"x", x},
                              {"y", y("kl")},
                              {"color", color},
                              {"shape", arm_shape(input.arms)},
                              {"opacity", shown_opacity()},
                              {"tooltip", tooltip}});
  points["name"] = fmt::format("loss_{}", batch);
  return {
      {"title", fmt::format("batch {}", batch)},
      {"width", width},
      {"height", kLossHeight},
      {"layer",
       {figure_layer("rows", here + " && datum.best",
                     {{"type", "line"}, {"interpolate", "step-after"}, {"strokeDash", {4, 4}}, {"color", kInkColor}},
                     {{"x", x}, {"y", y("kl")}, {"detail", {{"field", "length"}}}}),
        figure_layer("rows", here + " && isValid(datum.slow)", {{"type", "rule"}, {"strokeWidth", 1.4}, {"clip", true}},
                     {{"x", {{"field", "fast"}, {"type", "quantitative"}}},
                      {"x2", {{"field", "slow"}}},
                      {"y", y("kl")},
                      {"color", color},
                      {"opacity", shown_opacity()}}),
        figure_layer(
            "rows", here + " && isValid(datum.most)", {{"type", "rule"}, {"strokeWidth", 1.4}, {"clip", true}},
            {{"x", x}, {"y", y("least")}, {"y2", {{"field", "most"}}}, {"color", color}, {"opacity", shown_opacity()}}),
        points}}};
}

}  // namespace

bool has_losses(const FigureInput& input) {
  return std::ranges::any_of(input.rows.rows, [](const SummaryRow* row) { return has_both(*row); });
}

Figure loss_figure(const FigureInput& input) {
  const PhaseWords& words = words_of(input.rows.rows.front()->cell.phase);
  Json rows = Json::array();
  Table table{.title = "Data of the figure: time and loss",
              .columns = {{"Cell"}, {"Arm"}, {"Mean", true}, {"KL divergence", true}, {"No arm is better in both"}},
              .rows = {},
              .notes = {}};
  for (const SummaryRow* row : input.rows.rows) {
    if (!has_both(*row)) {
      continue;
    }
    const QualityRecord& quality = *row->quality;
    const bool best = is_best(*row, input);
    const auto bytes = per_step(*row, "modelled_weight_bytes");
    Json datum{{"arm", row->arm.label},
               {"batch", row->cell.batch},
               {"length", row->cell.length},
               {"time", shortened(*row->cell_mean_ns / words.unit_ns)},
               {"kl", shortened(drawn(quality.kl_divergence))},
               {"perplexity", shortened(std::exp(quality.log_ratio))},
               {"weights", bytes ? format_bytes(std::llround(*bytes)) : ""},
               {"best", best}};
    if (const auto& band = row->cell_mean_interval_ns) {
      datum["fast"] = shortened(std::max(0.0, band->low / words.unit_ns));
      datum["slow"] = shortened(band->high / words.unit_ns);
    }
    const double error = kNormal95 * quality.kl_divergence_error;
    if (quality.kl_divergence - error > kLeastDivergence) {
      datum["least"] = shortened(quality.kl_divergence - error);
      datum["most"] = shortened(quality.kl_divergence + error);
    }
    rows.push_back(std::move(datum));
    table.rows.push_back({row->run_id,
                          row->cell.id,
                          {cell_label(row->cell), row->arm.label, format_time(*row->cell_mean_ns),
                           fmt::format("{:.3g}", quality.kl_divergence), best ? "yes" : ""}});
  }
  Figure figure{.title = fmt::format("Time against loss: {}", input.rows.setting),
                .caption = fmt::format(
                    "An arm a point: how long a step takes, and how far its predictions of a text are from those of "
                    "the reference in fp32; down and to the left is better. Dashed: the arms that no other beats in "
                    "both. Rules are 95 % intervals, of the mean time over launches and of the divergence over tokens. "
                    "Divergences below {:g} are drawn there. {}",
                    kLeastDivergence, kHowToUse),
                .spec = start_spec(fmt::format("Time against loss: {}", input.rows.setting)),
                .data = std::move(table)};
  const auto batches = batches_of(input.rows);
  add_legend_toggle(figure.spec, "arm", fmt::format("loss_{}", batches.front()));
  figure.spec["datasets"] = {{"rows", rows}};
  figure.spec["vconcat"] =
      panels_by_batch(batches, [&](std::int64_t batch, int width) { return loss_view(input, batch, width); });
  return figure;
}

}  // namespace decodelab
