// Chooses which figures a run has.
#include "reports/figures/figure.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "reports/page/format.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostCellsOfARatioFigure =
    40;  // above, rows shrink below what can be read; the curves show them all

std::vector<FigureRows> figure_rows(const RunSummary& summary) {
  std::vector<FigureRows> groups;
  std::map<std::string, int> settings_of_phase;
  for (const SummaryRow& row : summary.rows) {
    const std::string setting = fmt::format("{} ({})", row.cell.phase, setting_label(row.cell));
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const FigureRows& known) { return known.setting == setting; });
    if (group == groups.end()) {
      const int index = ++settings_of_phase[row.cell.phase];
      group = groups.insert(group,
                            {index == 1 ? row.cell.phase : fmt::format("{}-{}", row.cell.phase, index), setting, {}});
    }
    group->rows.push_back(&row);
  }
  return groups;
}

bool has_ratios(const FigureRows& rows) {
  return std::any_of(rows.rows.begin(), rows.rows.end(),
                     [](const SummaryRow* row) { return row->time_ratio && !row->arm.baseline; });
}

std::size_t cell_count(const FigureRows& rows) {
  std::set<std::int64_t> cells;
  for (const SummaryRow* row : rows.rows) cells.insert(row->cell.id);
  return cells.size();
}

}  // namespace

std::vector<Figure> figures_of(const RunSummary& summary, const RunData& data) {
  std::vector<Figure> figures;
  for (const FigureRows& rows : figure_rows(summary)) {
    if (std::none_of(rows.rows.begin(), rows.rows.end(),
                     [](const SummaryRow* row) { return row->cell_mean_ns.has_value(); }))
      continue;
    figures.push_back(latency_figure(summary, rows));
    if (has_ratios(rows) && cell_count(rows) <= kMostCellsOfARatioFigure)
      figures.push_back(ratio_figure(summary, rows));
    figures.push_back(steps_figure(summary, rows, data));
  }
  return figures;
}

}  // namespace decodelab
