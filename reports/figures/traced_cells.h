// The traces of a figure's cells: which cells are shown, and what a traced step spends where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/figures/figure.h"

namespace decodelab {

/// One arm in one traced cell.
struct TracedArm {
  const SummaryRow* row = nullptr;
  const TraceRecord* trace = nullptr;
};

/// A cell with its traced arms, in planned order.
struct TracedCell {
  CellRecord cell;
  std::vector<TracedArm> arms;
};

/// Cells with a trace of at least one step, those with most traced arms and then the largest first, at most `most`.
///
/// Traces whose verdict is `broken` or `untraced` have no account and are left out.
std::vector<TracedCell> traced_cells(const FigureInput& input, std::size_t most);

/// Name of what no stage accounts for.
inline constexpr const char* kResidual = "residual";

/// Whether the account is that of a device: what kept it busy, and its gaps. Else it is the host's.
bool is_of_device(const TraceRecord& trace);

/// Nanoseconds of one traced step by stage, with the residual as its own; they add up to the step. Of a device the
/// stages are what kept it busy, and each cause of a gap has its own line: "idle: sync".
std::vector<std::pair<std::string, double>> stages_of(const TraceRecord& trace);

/// Stages of all traces in the order of a decode step as far as known, others and gaps behind them by name, the
/// residual last.
std::vector<std::string> stage_order(const std::vector<TracedCell>& cells);

/// "decodelab trace --run 3" with the run that a figure is of: how traces come to be.
std::string trace_command(const RunRecord& run);

}  // namespace decodelab
