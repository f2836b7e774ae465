// What the machine allows: the band of times that a step of a cell cannot be below, as the roofline arms of the run saw
// it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "reports/statistics/summary.h"

namespace decodelab {

/// Of one cell. The band is that of the launches of the run: the speed of a machine wanders.
struct Bound {
  double low_ns = 0;
  double high_ns = 0;
  std::optional<double> bytes;  ///< Modelled weights, keys and values that one step reads.
  std::optional<double> flops;
  /// The rooflines were not timed in this cell: from its modelled bytes and FLOPs at the speeds that they had in
  /// others.
  bool from_other_cells = false;
};

/// By the id of the cell, for all that have one; empty where the run has no roofline arm.
std::map<std::int64_t, Bound> bounds_of(const RunSummary& summary);

/// A modelled counter of a row for a single step; none where it was not counted.
std::optional<double> per_step(const SummaryRow& row, const char* counter);

}  // namespace decodelab
