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

/// Returns at most `most` cells with a trace of at least one step: those with most traced arms first, and among these
/// the largest (batch x length) first.
///
/// Traces whose verdict is `broken` or `untraced` have no account and are left out.
std::vector<TracedCell> traced_cells(const FigureInput& input, std::size_t most);

/// Name of the time that no stage accounts for.
inline constexpr const char* kResidual = "residual";

/// Returns whether the account is that of a device (what kept it busy, and its gaps); otherwise it is the host's.
bool is_of_device(const TraceRecord& trace);

/// Returns nanoseconds per traced step by stage, with an entry for the residual; they add up to the step. For a device,
/// the stages are what kept it busy, and each cause of a gap has its own entry, such as "idle: sync".
std::vector<std::pair<std::string, double>> stages_of(const TraceRecord& trace);

/// Returns the stages of all traces: known ones in the order of a decode step, then other stages and gaps by name, then
/// the residual.
std::vector<std::string> stage_order(const std::vector<TracedCell>& cells);

/// Returns the command that makes the traces of a run: "decodelab trace --run 3".
std::string trace_command(const RunRecord& run);

}  // namespace decodelab
