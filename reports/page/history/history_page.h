// The history of a metric as tables, as a figure and as data.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "base/table.h"
#include "reports/figures/figure.h"
#include "reports/statistics/history.h"

namespace decodelab {

/// Returns one row per series: Cell | Arm | Points | First | Last | Steps | Last step at.
Table history_overview_table(const std::vector<HistorySeries>& series, const std::string& metric);
/// Returns one row per point: Run | Commit | Date | value | Change | Step.
Table history_table(const HistorySeries& series, const std::string& metric);
/// Draws the points in the order in which they were measured and marks the steps; one panel per series, at most 12.
Figure history_figure(const std::vector<HistorySeries>& series, const std::string& metric);

std::string history_to_json(const std::vector<HistorySeries>& series, const std::string& metric);
std::string history_to_csv(const std::vector<HistorySeries>& series, const std::string& metric);

/// Writes history.html, history.md, history.json, history.csv and figures/history.* into `out_dir`, as write_report()
/// does.
void write_history(const std::vector<HistorySeries>& series, const std::string& metric,
                   const std::filesystem::path& out_dir, std::ostream& warnings);

}  // namespace decodelab
