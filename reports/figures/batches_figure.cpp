// The mirror view of the latency curves: a panel per arm, a line per batch size, on one scale.
#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/curves.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBatchesHeight = 190;
constexpr std::size_t kMostColumns = 3;
constexpr std::size_t kBatchesMostArms = 12;  // the panels of an ablation, which has more arms, would hardly differ

// As many arms as there are panels; the baseline is among them, being planned first.
std::vector<ArmRecord> shown_arms(const FigureInput& input) {
  std::vector<ArmRecord> arms;
  for (const ArmRecord& arm : input.arms) {
    const bool measured = std::ranges::any_of(
        input.rows.rows, [&](const SummaryRow* row) { return row->arm.id == arm.id && row->cell_mean_ns; });
    if (measured && arms.size() < kBatchesMostArms) {
      arms.push_back(arm);
    }
  }
  return arms;
}

struct Look {
  Json color;
  Json shape;
  Json dash;
};

Json arm_view(const FigureInput& input, const ArmRecord& arm, int width, const TimeRange& range, const Look& look) {
  const PhaseWords& words = words_of(input.rows.rows.front()->cell.phase);
  const std::string here = fmt::format("datum.arm === {} && isValid(datum.mean)", quoted(arm.label));
  const Json x = length_axis("x", plotted_lengths(input.rows), words.length);
  const Json y{{"field", "mean"},
               {"type", "quantitative"},
               {"title", words.unit},
               {"scale", switched_scale(range.low, range.high)},
               {"axis", {{"values", switched_ticks(range.low, range.high)}, {"format", "~r"}}}};
  Json points = figure_layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 34}},
                             {{"x", x},
                              {"y", y},
                              {"color", look.color},
                              {"shape", look.shape},
                              {"opacity", shown_opacity()},
                              {"tooltip", curve_tooltip(words)}});
  points["name"] = fmt::format("arm_{}", arm.id);
  return {{"title", {{"text", arm.label}, {"limit", width}}},
          {"width", width},
          {"height", kBatchesHeight},
          {"layer",
           {figure_layer(
                "rows", here, {{"type", "line"}, {"strokeWidth", 1.8}},
                {{"x", x}, {"y", y}, {"color", look.color}, {"strokeDash", look.dash}, {"opacity", shown_opacity()}}),
            points}}};
}

}  // namespace

Figure batches_figure(const FigureInput& input) {
  const PhaseWords& words = words_of(input.rows.rows.front()->cell.phase);
  const auto arms = shown_arms(input);
  std::vector<ArmRecord> looks;  // one per batch size, drawn with the colours and shapes of arms
  for (const std::int64_t batch : batches_of(input.rows)) {
    looks.push_back({.id = batch, .label = std::to_string(batch)});
  }
  Look look{arm_color(looks), arm_shape(looks), arm_dash(looks)};
  for (Json* channel : {&look.color, &look.shape, &look.dash}) {
    (*channel)["field"] = "batch_size";
    (*channel)["legend"]["title"] = "batch size";
  }
  TimeRange range;
  Json rows = Json::array();
  Table table{.title = "Data of the figure: mean of a step over launches",
              .columns = {{"Arm"}, {"Cell"}, {"Mean", true}},
              .rows = {},
              .notes = {}};
  for (const ArmRecord& arm : arms) {
    for (const SummaryRow* row : input.rows.rows) {
      if (row->arm.id != arm.id || !row->cell_mean_ns) {
        continue;
      }
      range.add(*row->cell_mean_ns / words.unit_ns);
      rows.push_back(curve_datum(*row, words));
      rows.back()["batch_size"] = std::to_string(row->cell.batch);
      table.rows.push_back(
          {row->run_id, row->cell.id, {arm.label, cell_label(row->cell), format_time(*row->cell_mean_ns)}});
    }
  }
  if (range.empty()) {
    range = {0.5, 1};
  }
  Figure figure{.title = fmt::format("Latency by batch size: {}", input.rows.setting),
                .caption = fmt::format(
                    "The same means as above, a panel per arm and a line per batch size, all on one scale.{}",
                    arms.size() == kBatchesMostArms ? fmt::format(" The first {} arms.", kBatchesMostArms) : ""),
                .spec = start_spec(fmt::format("Latency by batch size: {}", input.rows.setting)),
                .data = std::move(table)};
  add_logarithm_switch(figure.spec, range.wide());
  add_legend_toggle(figure.spec, "batch_size", fmt::format("arm_{}", arms.front().id));
  figure.spec["datasets"] = {{"rows", rows}};
  const std::size_t columns = std::min(arms.size(), kMostColumns);
  const int width = kFigureWidth / static_cast<int>(columns) - kPanelGap;
  Json lines = Json::array();
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (i % columns == 0) {
      lines.push_back({{"hconcat", Json::array()}, {"spacing", kPanelGap}, {"bounds", "flush"}});
    }
    lines.back()["hconcat"].push_back(arm_view(input, arms[i], width, range.padded(), look));
  }
  figure.spec["vconcat"] = lines;
  figure.spec["spacing"] = 24;
  return figure;
}

}  // namespace decodelab
