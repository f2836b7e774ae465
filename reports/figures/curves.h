// What the figures with a length axis share: units, titles, panels by batch, and the data of a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/phase.h"
#include "reports/figures/figure.h"

namespace decodelab {

inline constexpr int kFigureWidth = 1090;  ///< Width of all panels of a line, in the page's column.
inline constexpr int kPanelGap = 64;       ///< Space left of a panel, for its axis.

/// Returns the batch sizes of the rows, ascending, each once.
std::vector<std::int64_t> batches_of(const FigureRows& rows);
/// Returns the places of the rows on the length axis.
std::vector<double> plotted_lengths(const FigureRows& rows);

/// Least and most of some positive times; empty() where there was none.
struct TimeRange {
  double low = 0;
  double high = 0;
  void add(double value);
  bool empty() const { return high <= 0; }
  /// Returns whether a linear axis would hide the small values.
  bool wide() const;
  /// Returns the range, extended a little beyond both ends.
  TimeRange padded() const;
};

/// Returns the data that curves draw for a row, with times in the unit of `words`. Fields without a value are left out,
/// since a page has hundreds of rows, several times each.
nlohmann::ordered_json curve_datum(const SummaryRow& row, const PhaseWords& words);
/// Returns the tooltip for a point of a curve.
nlohmann::ordered_json curve_tooltip(const PhaseWords& words);

/// Lays out panels, each made by `view(batch, width)`, in lines of at most three. Several `views` give several lines
/// for the same batches.
template <class... View>
nlohmann::ordered_json panels_by_batch(const std::vector<std::int64_t>& batches, const View&... views) {
  constexpr std::size_t kMostColumns = 3;
  const std::size_t columns = std::min(batches.size(), kMostColumns);
  const int width = kFigureWidth / static_cast<int>(columns) - kPanelGap;
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (std::size_t first = 0; first < batches.size(); first += columns) {
    const std::span<const std::int64_t> line(batches.begin() + static_cast<std::ptrdiff_t>(first),
                                             std::min(columns, batches.size() - first));
    const auto add = [&](const auto& view) {
      nlohmann::ordered_json panels = nlohmann::ordered_json::array();
      for (const std::int64_t batch : line) {
        panels.push_back(view(batch, width));
      }
      // Flush: labels of axes do not push panels out of line.
      lines.push_back({{"hconcat", panels}, {"spacing", kPanelGap}, {"bounds", "flush"}});
    };
    (add(views), ...);
  }
  return lines;
}

}  // namespace decodelab
