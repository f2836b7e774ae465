// The least time that a step of a cell can take on the machine, as a band that the roofline arms of the run measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "reports/statistics/summary.h"

namespace decodelab {

/// The bound of one cell. The band spans the launches of the run, since the speed of a machine varies.
struct Bound {
  double low_ns = 0;
  double high_ns = 0;
  std::optional<double> bytes;  ///< Modelled weights, keys and values that one step reads.
  std::optional<double> flops;
  /// True where the rooflines were not timed in this cell. The band is then computed from its modelled bytes and FLOPs,
  /// at the speeds that the rooflines had in other cells.
  bool from_other_cells = false;
};

/// Returns the bounds by the id of the cell, for all cells that have one; empty where the run has no roofline arm.
std::map<std::int64_t, Bound> bounds_of(const RunSummary& summary);

/// Returns a counter of a row divided by its counted steps; none where it was not counted.
std::optional<double> per_step(const SummaryRow& row, const char* counter);

}  // namespace decodelab
