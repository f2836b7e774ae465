// Takes the slower of both rooflines, launch by launch.
#include "reports/figures/bound.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace decodelab {
namespace {

struct Range {
  double low = INFINITY;
  double high = 0;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return high <= 0; }
};

// Everything that is known of the bound of a cell.
struct CellFacts {
  std::string device;
  std::string dtype;
  std::map<std::int64_t, double> launch_ns;  // of the slower roofline
  std::map<std::int64_t, double> read_ns;
  std::map<std::int64_t, double> gemm_ns;
  std::optional<double> bytes;
  std::optional<double> flops;
};

std::map<std::int64_t, CellFacts> facts_of(const RunSummary& summary) {
  std::map<std::int64_t, CellFacts> cells;
  for (const SummaryRow& row : summary.rows) {
    CellFacts& cell = cells[row.cell.id];
    cell.device = row.cell.device;
    cell.dtype = row.cell.dtype;
    if (!row.arm.roofline()) {
      const auto weights = per_step(row, "modelled_weight_bytes");
      if (weights) {
        // The roofline reads what matrices take in the cell's dtype.
        cell.bytes = *weights + per_step(row, "modelled_kv_bytes").value_or(0) + per_step(row, kSavedBytes).value_or(0);
      }
      if (const auto flops = per_step(row, "modelled_flops")) {
        cell.flops = flops;
      }
      continue;
    }
    for (const auto& [launch, ns] : row.launch_means_ns) {
      (row.arm.label == kRooflineRead ? cell.read_ns : cell.gemm_ns)[launch] = ns;
      cell.launch_ns[launch] = std::max(cell.launch_ns[launch], ns);
    }
  }
  return cells;
}

}  // namespace

std::optional<double> per_step(const SummaryRow& row, const char* counter) {
  const auto value = row.counters.find(counter);
  const auto steps = row.counters.find("counted_steps");
  if (value == row.counters.end() || steps == row.counters.end() || steps->second <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(value->second) / static_cast<double>(steps->second);
}

std::map<std::int64_t, Bound> bounds_of(const RunSummary& summary) {
  const auto cells = facts_of(summary);
  // Speeds in bytes and FLOPs per nanosecond, by device; those of matrix products by dtype too.
  std::map<std::string, Range> read_speed;
  std::map<std::pair<std::string, std::string>, Range> gemm_speed;
  for (const auto& [id, cell] : cells) {
    for (const auto& [launch, ns] : cell.read_ns) {
      if (cell.bytes && ns > 0) {
        read_speed[cell.device].add(*cell.bytes / ns);
      }
    }
    for (const auto& [launch, ns] : cell.gemm_ns) {
      if (cell.flops && ns > 0) {
        gemm_speed[{cell.device, cell.dtype}].add(*cell.flops / ns);
      }
    }
  }
  std::map<std::int64_t, Bound> bounds;
  for (const auto& [id, cell] : cells) {
    Bound bound{.bytes = cell.bytes, .flops = cell.flops};
    if (!cell.launch_ns.empty()) {
      Range seen;
      for (const auto& [launch, ns] : cell.launch_ns) {
        seen.add(ns);
      }
      bound.low_ns = seen.low;
      bound.high_ns = seen.high;
    } else {
      bound.from_other_cells = true;
      const Range read = read_speed[cell.device];
      const Range gemm = gemm_speed[{cell.device, cell.dtype}];
      if (cell.bytes && !read.empty()) {
        bound.low_ns = *cell.bytes / read.high;
        bound.high_ns = *cell.bytes / read.low;
      }
      if (cell.flops && !gemm.empty()) {
        bound.low_ns = std::max(bound.low_ns, *cell.flops / gemm.high);
        bound.high_ns = std::max(bound.high_ns, *cell.flops / gemm.low);
      }
    }
    if (bound.high_ns > 0 && std::isfinite(bound.high_ns)) {
      bounds.emplace(id, bound);
    }
  }
  return bounds;
}

}  // namespace decodelab
