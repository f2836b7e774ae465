// Chooses which figures a run has.
#include "reports/figures/figure.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "reports/page/format.h"

namespace decodelab {
namespace {

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

bool is_measured(const FigureInput& input) {
  return std::ranges::any_of(input.rows.rows, [](const SummaryRow* row) { return row->cell_mean_ns.has_value(); });
}

constexpr FigureKind kFigureKinds[] = {
    {"latency", FigureSection::latency, is_measured, latency_figure},
    {"ratios", FigureSection::changed, has_few_ratios, ratio_figure},
    {"steps", FigureSection::distributions, is_measured, steps_figure},
};

}  // namespace

std::span<const FigureKind> figure_kinds() { return kFigureKinds; }

std::vector<Figure> figures_of(const RunSummary& summary, const RunData& data) {
  std::vector<Figure> figures;
  for (const FigureRows& rows : figure_rows(summary)) {
    const FigureInput input{summary, data, rows};
    if (!is_measured(input)) continue;
    for (const FigureKind& kind : figure_kinds()) {
      if (!kind.applies(input)) continue;
      Figure figure = kind.draw(input);
      figure.name = rows.name + "-" + kind.name;
      figure.section = kind.section;
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace decodelab
