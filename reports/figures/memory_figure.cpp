// Peak memory against length: an arm a line, one copy of the cache as a dashed line, a cross where memory ran out
// first.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/curves.h"
#include "reports/figures/figure_style.h"
#include "reports/figures/interaction.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMemoryHeight = 150;
constexpr double kMib = 0x1p20;

// Keys and values of a cell by their closed form, from whichever arm counted them.
std::map<std::int64_t, double> cache_mib(const FigureInput& input) {
  std::map<std::int64_t, double> bytes;
  for (const SummaryRow* row : input.rows.rows) {
    if (const auto modelled = per_step(*row, "modelled_kv_bytes")) {
      bytes[row->cell.id] = *modelled / kMib;
    }
  }
  return bytes;
}

// The rows in which an arm first ran out of memory, by batch.
std::vector<const SummaryRow*> first_failures(const FigureInput& input) {
  std::map<std::pair<std::int64_t, std::int64_t>, const SummaryRow*> first;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->status != RowStatus::oom) {
      continue;
    }
    const SummaryRow*& held = first[{row->arm.id, row->cell.batch}];
    if (held == nullptr || row->cell.length < held->cell.length) {
      held = row;
    }
  }
  std::vector<const SummaryRow*> rows;
  for (const auto& [place, row] : first) {
    rows.push_back(row);
  }
  return rows;
}

Json memory_view(const FigureInput& input, std::int64_t batch, int width) {
  const std::string here = fmt::format("datum.batch === {}", batch);
  const auto& arms = input.arms;
  const Json x = length_axis("x", plotted_lengths(input.rows), words_of(input.rows.rows.front()->cell.phase).length);
  const Json color = arm_color(arms);
  double highest = 1;
  const auto copies = cache_mib(input);
  for (const SummaryRow* row : input.rows.rows) {
    if (row->cell.batch != batch) {
      continue;
    }
    if (row->peak_bytes) {
      highest = std::max(highest, static_cast<double>(*row->peak_bytes) / kMib);
    }
    if (const auto copy = copies.find(row->cell.id); copy != copies.end()) {
      highest = std::max(highest, copy->second);
    }
  }
  const auto y = [&](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"title", "peak MiB"},
                {"scale", {{"domain", {0, shortened(highest)}}, {"nice", true}}},
                {"axis", {{"tickCount", 5}, {"format", "~r"}}}};
  };
  const Json tooltip{
      {{"field", "arm"}}, {{"field", "length"}}, {{"field", "peak"}, {"title", "peak MiB"}, {"format", ".4~r"}}};
  Json points = figure_layer("rows", here, {{"type", "point"}, {"filled", true}, {"size", 30}},
                             {{"x", x},
                              {"y", y("peak")},
                              {"color", color},
                              {"shape", arm_shape(arms)},
                              {"opacity", shown_opacity()},
                              {"tooltip", tooltip}});
  points["name"] = fmt::format("memory_{}", batch);
  Json layers{
      figure_layer("cache", here,
                   {{"type", "line"}, {"strokeDash", {5, 4}}, {"strokeWidth", 1.4}, {"color", kInkColor}},
                   {{"x", x}, {"y", y("cache")}}),
      figure_layer(
          "rows", here, {{"type", "line"}, {"strokeWidth", 1.6}},
          {{"x", x}, {"y", y("peak")}, {"color", color}, {"strokeDash", arm_dash(arms)}, {"opacity", shown_opacity()}}),
      points};
  int cross = 8;
  for (const ArmRecord& arm : arms) {
    const auto failed = first_failures(input);
    if (std::ranges::none_of(failed, [&](const SummaryRow* row) { return row->arm.id == arm.id; })) {
      continue;
    }
    layers.push_back(figure_layer("oom", fmt::format("{} && datum.arm === {}", here, quoted(arm.label)),
                                  {{"type", "text"},
                                   {"text", "oom \xc3\x97"},
                                   {"fontSize", 13},
                                   {"fontWeight", "bold"},
                                   {"align", "right"},
                                   {"dx", 5}},
                                  {{"x", x},
                                   {"y", {{"value", cross}}},
                                   {"color", color},
                                   {"tooltip", {{{"field", "arm"}}, {{"field", "length"}}, {{"field", "reason"}}}}}));
    cross += 13;
  }
  return {{"title", fmt::format("batch {}", batch)}, {"width", width}, {"height", kMemoryHeight}, {"layer", layers}};
}

}  // namespace

bool has_memory(const FigureInput& input) {
  return std::ranges::any_of(input.rows.rows, [](const SummaryRow* row) { return row->peak_bytes.has_value(); });
}

Figure memory_figure(const FigureInput& input) {
  Json rows = Json::array();
  Json oom = Json::array();
  Json cache = Json::array();
  Table table{.title = "Data of the figure: peak memory of a step",
              .columns = {{"Cell"}, {"Arm"}, {"Peak", true}, {"One copy of the cache", true}},
              .rows = {},
              .notes = {}};
  auto copies = cache_mib(input);
  const auto with_copies = copies;
  for (const SummaryRow* row : input.rows.rows) {
    const auto copy = with_copies.find(row->cell.id);
    if (copies.erase(row->cell.id) > 0) {
      cache.push_back(
          {{"batch", row->cell.batch}, {"x", shortened(row->plotted_length())}, {"cache", shortened(copy->second)}});
    }
    if (!row->peak_bytes) {
      continue;
    }
    rows.push_back({{"arm", row->arm.label},
                    {"batch", row->cell.batch},
                    {"length", row->cell.length},
                    {"x", shortened(row->plotted_length())},
                    {"peak", shortened(static_cast<double>(*row->peak_bytes) / kMib)}});
    table.rows.push_back({row->run_id,
                          row->cell.id,
                          {cell_label(row->cell), row->arm.label, format_bytes(*row->peak_bytes),
                           copy == with_copies.end() ? "" : format_bytes(std::llround(copy->second * kMib))}});
  }
  for (const SummaryRow* row : first_failures(input)) {
    oom.push_back({{"arm", row->arm.label},
                   {"batch", row->cell.batch},
                   {"length", row->cell.length},
                   {"x", shortened(row->plotted_length())},
                   {"reason", row->reason}});
    table.rows.push_back({row->run_id, row->cell.id, {cell_label(row->cell), row->arm.label, "out of memory", ""}});
  }
  Figure figure{
      .title = fmt::format("Peak memory: {}", input.rows.setting),
      .caption = fmt::format(
          "The most bytes of tensors held in one step above the weights and the cache that it began with.{}{}",
          with_copies.empty() ? "" : " Dashed: one copy of all keys and values, by its closed form.",
          oom.empty() ? "" : " A cross stands at the first length at which an arm ran out of memory."),
      .spec = start_spec(fmt::format("Peak memory: {}", input.rows.setting)),
      .data = std::move(table)};
  const auto batches = batches_of(input.rows);
  add_legend_toggle(figure.spec, "arm", fmt::format("memory_{}", batches.front()));
  figure.spec["datasets"] = {{"rows", rows}, {"cache", cache}, {"oom", oom}};
  figure.spec["vconcat"] =
      panels_by_batch(batches, [&](std::int64_t batch, int width) { return memory_view(input, batch, width); });
  return figure;
}

}  // namespace decodelab
