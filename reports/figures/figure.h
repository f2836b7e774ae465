// Figures of a run as Vega-Lite specs, each with its data as a table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/page/table.h"
#include "reports/statistics/summary.h"
#include "reports/store/record.h"

namespace decodelab {

/// Version in the `$schema` of every spec; the newest that vl-convert 1.9 draws.
inline constexpr const char* kVegaLiteVersion = "6.4";

/// Where on the page a figure stands, in the order of the page.
enum class FigureSection { changed, latency, ablation, speedup, throughput, breakdown, distributions, trust };

struct Figure {
  std::string name;  ///< Stem of its files: decode-latency.
  std::string title;
  std::string caption;                             ///< What is drawn, and what an interval is.
  nlohmann::ordered_json spec;                     ///< Complete with its data; opens in any Vega editor.
  Table data;                                      ///< The numbers that are drawn, for readers who want them as text.
  FigureSection section = FigureSection::latency;  ///< Given by the table of figure kinds.
};

/// Rows of one phase under one setting: what one figure shows.
struct FigureRows {
  std::string name;     ///< decode, or decode-2 for a second setting of the same phase.
  std::string setting;  ///< "decode (bf16, cpu, 8 threads, scope step)".
  std::vector<const SummaryRow*> rows;
};

/// What every figure of one phase and setting is drawn from.
struct FigureInput {
  const RunSummary& summary;
  const RunData& data;  ///< That `summary` was made from.
  const FigureRows& rows;
};

/// A figure that runs may have: a row of the one table in figure.cpp.
struct FigureKind {
  const char* name;  ///< Of a figure after its phase: latency.
  FigureSection section;
  bool (*applies)(const FigureInput&);  ///< Whether there is anything to draw.
  Figure (*draw)(const FigureInput&);   ///< Name and section are filled in from this row.
};
std::span<const FigureKind> figure_kinds();

/// All figures of a run: for each phase and setting every kind that applies. A phase without a measured row has none.
///
/// `data` is what `summary` was made from.
std::vector<Figure> figures_of(const RunSummary& summary, const RunData& data);

/// A panel per batch size: latency, paired ratio and peak memory against length, a line per arm.
Figure latency_figure(const FigureInput& input);
/// Paired ratios with intervals and the band of effects that could not have been seen, a row per cell.
bool has_few_ratios(const FigureInput& input);
Figure ratio_figure(const FigureInput& input);
/// Steps of the largest cell that most arms ran: their distribution, and one by one in the order in which they ran.
Figure steps_figure(const FigureInput& input);

}  // namespace decodelab
