// Chooses which figures a run has.
#include "reports/figures/figure.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

std::vector<FigureRows> figure_rows(const RunSummary& summary) {
  std::vector<FigureRows> groups;
  std::map<Phase, int> settings_of_phase;
  for (const SummaryRow& row : summary.rows) {
    if (row.arm.roofline()) {
      continue;
    }
    const std::string phase = to_string(row.cell.phase);
    const std::string setting = fmt::format("{} ({})", phase, setting_label(row.cell));
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const FigureRows& known) { return known.setting == setting; });
    if (group == groups.end()) {
      const int index = ++settings_of_phase[row.cell.phase];
      group = groups.insert(group, {index == 1 ? phase : fmt::format("{}-{}", phase, index), setting, {}});
    }
    group->rows.push_back(&row);
  }
  return groups;
}

constexpr FigureKind kFigureKinds[] = {
    {"ratios", FigureSection::changed, FigurePhases::all, has_ratios, ratio_figure},
    {"latency", FigureSection::latency, FigurePhases::steps, is_measured, latency_figure},
    {"batches", FigureSection::latency, FigurePhases::steps, has_batches, batches_figure},
    {"load", FigureSection::latency, FigurePhases::batching, has_load, load_figure},
    {"prefix", FigureSection::latency, FigurePhases::steps, has_prefix_shares, prefix_figure},
    {"top-tokens", FigureSection::latency, FigurePhases::steps, has_top_tokens, top_tokens_figure},
    {"loss", FigureSection::latency, FigurePhases::steps, has_losses, loss_figure},
    {"memory", FigureSection::latency, FigurePhases::steps, has_memory, memory_figure},
    {"ablation", FigureSection::ablation, FigurePhases::steps, has_switches, ablation_figure},
    {"speedup", FigureSection::speedup, FigurePhases::steps, has_ratios, speedup_figure},
    {"throughput", FigureSection::throughput, FigurePhases::steps, has_batches, throughput_figure},
    {"stages", FigureSection::breakdown, FigurePhases::steps, has_traces, stages_figure},
    {"waterfall", FigureSection::breakdown, FigurePhases::steps, has_traced_pairs, waterfall_figure},
    {"steps", FigureSection::distributions, FigurePhases::all, is_measured, steps_figure},
    {"order", FigureSection::trust, FigurePhases::all, has_ratios, order_figure},
};

bool is_of(FigurePhases phases, const FigureRows& rows) {
  const bool batching = rows.rows.front()->cell.phase == Phase::batching;
  return phases == FigurePhases::all || batching == (phases == FigurePhases::batching);
}

}  // namespace

std::span<const FigureKind> figure_kinds() { return kFigureKinds; }

bool is_measured(const FigureInput& input) {
  return std::ranges::any_of(input.rows.rows, [](const SummaryRow* row) { return row->cell_mean_ns.has_value(); });
}

bool has_ratios(const FigureInput& input) {
  return std::ranges::any_of(input.rows.rows,
                             [](const SummaryRow* row) { return row->time_ratio && !row->arm.baseline; });
}

bool has_batches(const FigureInput& input) {
  std::set<std::int64_t> batches;
  for (const SummaryRow* row : input.rows.rows) {
    if (row->cell_mean_ns) {
      batches.insert(row->cell.batch);
    }
  }
  return batches.size() > 1;
}

std::vector<Figure> figures_of(const RunSummary& summary, const RunData& data, bool smooth) {
  std::vector<Figure> figures;
  std::vector<ArmRecord> arms = summary.arms;
  std::erase_if(arms, [](const ArmRecord& arm) { return arm.roofline(); });
  const std::map<std::int64_t, Bound> bounds = bounds_of(summary);
  for (const FigureRows& rows : figure_rows(summary)) {
    const FigureInput input{summary, data, rows, arms, bounds, smooth};
    if (!is_measured(input)) {
      continue;
    }
    for (const FigureKind& kind : figure_kinds()) {
      if (!is_of(kind.phases, rows) || !kind.applies(input)) {
        continue;
      }
      Figure figure = kind.draw(input);
      figure.name = rows.name + "-" + kind.name;
      figure.section = kind.section;
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace decodelab
