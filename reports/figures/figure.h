// Figures of a run as Vega-Lite specs, each with its data as a table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/table.h"
#include "reports/figures/bound.h"
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
  const RunData& data;  ///< The run that `summary` was made from.
  const FigureRows& rows;
  const std::vector<ArmRecord>& arms;           ///< Without rooflines, which figures show as the bound of the others.
  const std::map<std::int64_t, Bound>& bounds;  ///< By cell, as bounds_of() gives them.
  bool smooth = false;                          ///< Whether curves get a smoothed line beside their points.
};

/// Which phases a figure is of: those whose steps are timed over batch and length, batching, whose cells differ in what
/// is timed, or all.
enum class FigurePhases { steps, batching, all };

/// A figure that runs may have: a row of the one table in figure.cpp.
struct FigureKind {
  const char* name;  ///< The figure's name after its phase: latency.
  FigureSection section;
  FigurePhases phases;
  bool (*applies)(const FigureInput&);  ///< Whether there is anything to draw.
  Figure (*draw)(const FigureInput&);   ///< Name and section are filled in from this row.
};
std::span<const FigureKind> figure_kinds();

/// Draws all figures of a run: for each phase and setting every kind that applies. A phase without a measured row has
/// none.
///
/// `data` is what `summary` was made from. `smooth` adds a line by local regression to latency curves: it replaces no
/// point.
std::vector<Figure> figures_of(const RunSummary& summary, const RunData& data, bool smooth = false);

/// Returns whether a row of the figure has times.
bool is_measured(const FigureInput& input);

/// Draws a panel per batch size: latency with its bound, and the paired ratio, against length, with a line per arm.
Figure latency_figure(const FigureInput& input);
/// Draws the same latencies with a panel per arm and a line per batch size. has_batches() returns whether there is
/// anything to draw.
bool has_batches(const FigureInput& input);
Figure batches_figure(const FigureInput& input);
/// Draws peak bytes against length, with the closed form of the cache and a cross where memory first ran out.
/// has_memory() returns whether there is anything to draw.
bool has_memory(const FigureInput& input);
Figure memory_figure(const FigureInput& input);
/// Draws the time of each arm against how far its predictions of a text are from the reference's in fp32. has_losses()
/// returns whether there is anything to draw.
bool has_losses(const FigureInput& input);
Figure loss_figure(const FigureInput& input);
/// Draws paired ratios with intervals, the margin and the smallest detectable effects, beside the counters that moved.
/// has_ratios() returns whether there is anything to draw.
bool has_ratios(const FigureInput& input);
Figure ratio_figure(const FigureInput& input);
/// Draws a bar per switch that was added or left out, and the steps from the baseline along the presets. has_switches()
/// returns whether there is anything to draw.
bool has_switches(const FigureInput& input);
Figure ablation_figure(const FigureInput& input);
/// Draws speed-ups as heat maps over batch and length, with the numbers.
Figure speedup_figure(const FigureInput& input);
/// Draws throughput against latency, a point per batch size.
Figure throughput_figure(const FigureInput& input);
/// Draws tokens a second, time to first token and time between tokens of phase batching over the rate of requests, or
/// over the rows of the batch. has_load() returns whether there is anything to draw.
bool has_load(const FigureInput& input);
Figure load_figure(const FigureInput& input);
/// Draws the times of a phase over the share of each prompt that a prefix store holds, where arms differ in it.
/// has_prefix_shares() returns whether there is anything to draw.
bool has_prefix_shares(const FigureInput& input);
Figure prefix_figure(const FigureInput& input);
/// Draws the times of a phase over how many of the most probable tokens are told, where arms differ in it.
/// has_top_tokens() returns whether there is anything to draw.
bool has_top_tokens(const FigureInput& input);
Figure top_tokens_figure(const FigureInput& input);
/// Draws stages of traced steps as stacked bars. has_traces() returns whether there is anything to draw.
bool has_traces(const FigureInput& input);
Figure stages_figure(const FigureInput& input);
/// Draws the way from the time of the baseline's traced step to that of an arm's, stage by stage. has_traced_pairs()
/// returns whether there is anything to draw.
bool has_traced_pairs(const FigureInput& input);
Figure waterfall_figure(const FigureInput& input);
/// Draws the distribution and the order of single steps in the cell that a reader picks.
Figure steps_figure(const FigureInput& input);
/// Draws contrasts of single blocks in the order in which they ran, for the trust section.
Figure order_figure(const FigureInput& input);

}  // namespace decodelab
