// Figures of a run as Vega-Lite specs, each with its data as a table.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/page/table.h"
#include "reports/statistics/summary.h"
#include "reports/store/record.h"

namespace decodelab {

/// Version in the `$schema` of every spec; the newest that vl-convert 1.9 draws.
inline constexpr const char* kVegaLiteVersion = "6.4";

struct Figure {
  std::string name;  ///< Stem of its files: decode-latency.
  std::string title;
  std::string caption;          ///< What is drawn, and what an interval is.
  nlohmann::ordered_json spec;  ///< Complete with its data; opens in any Vega editor.
  Table data;                   ///< The numbers that are drawn, for readers who want them as text.
};

/// Rows of one phase under one setting: what one figure shows.
struct FigureRows {
  std::string name;     ///< decode, or decode-2 for a second setting of the same phase.
  std::string setting;  ///< "decode (bf16, cpu, 8 threads, scope step)".
  std::vector<const SummaryRow*> rows;
};

/// All figures of a run: for each phase and setting latency curves, paired ratios (up to 40 cells) and the steps of one cell.
///
/// A phase without a measured row has no figure. `data` is what `summary` was made from.
std::vector<Figure> figures_of(const RunSummary& summary, const RunData& data);

/// A panel per batch size: latency, paired ratio and peak memory against length, a line per arm.
Figure latency_figure(const RunSummary& summary, const FigureRows& rows);
/// Paired ratios with intervals and the band of effects that could not have been seen, a row per cell.
Figure ratio_figure(const RunSummary& summary, const FigureRows& rows);
/// Steps of the largest cell that most arms ran: their distribution, and one by one in the order in which they ran.
Figure steps_figure(const RunSummary& summary, const FigureRows& rows, const RunData& data);

}  // namespace decodelab
