// Chooses traced cells and divides their sums by steps.
#include "reports/figures/traced_cells.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace decodelab {
namespace {

// In the order in which a step runs through them.
constexpr std::array kKnownStages{"embed", "norm", "qkv",    "kv_write", "attention", "projection",
                                  "mlp",   "head", "choice", "details",  "text",      "other"};

bool has_account(const TraceRecord& trace) {
  return trace.steps > 0 && trace.steps_ns > 0 && trace.verdict != "broken" && trace.verdict != "untraced";
}

}  // namespace

std::vector<TracedCell> traced_cells(const FigureInput& input, std::size_t most) {
  std::vector<TracedCell> cells;
  for (const SummaryRow* row : input.rows.rows) {
    const auto trace = std::ranges::find_if(input.data.traces, [&](const TraceRecord& record) {
      return record.cell_id == row->cell.id && record.arm_id == row->arm.id && has_account(record);
    });
    if (trace == input.data.traces.end()) {
      continue;
    }
    auto cell = std::ranges::find(cells, row->cell.id, [](const TracedCell& known) { return known.cell.id; });
    if (cell == cells.end()) {
      cell = cells.insert(cell, {row->cell, {}});
    }
    cell->arms.push_back({row, &*trace});
  }
  std::ranges::stable_sort(cells, std::greater<>(), [](const TracedCell& cell) {
    return std::tuple(cell.arms.size(), cell.cell.batch * cell.cell.length);
  });
  if (cells.size() > most) {
    cells.resize(most);
  }
  return cells;
}

bool is_of_device(const TraceRecord& trace) {
  return std::ranges::any_of(
      trace.shares, [](const TraceShareRecord& share) { return share.kind == "stage" && share.device_ns > 0; });
}

std::vector<std::pair<std::string, double>> stages_of(const TraceRecord& trace) {
  std::vector<std::pair<std::string, double>> stages;
  const bool device = is_of_device(trace);
  std::int64_t rest = trace.steps_ns;
  for (const TraceShareRecord& share : trace.shares) {
    const bool gap = share.kind == "gap";
    const std::int64_t ns = device ? share.device_ns : share.host_ns;
    if (gap && !device) {
      continue;
    }
    rest -= ns;
    stages.emplace_back(gap ? "idle: " + share.name : share.name,
                        static_cast<double>(ns) / static_cast<double>(trace.steps));
  }
  stages.emplace_back(kResidual, static_cast<double>(rest) / static_cast<double>(trace.steps));
  return stages;
}

std::vector<std::string> stage_order(const std::vector<TracedCell>& cells) {
  std::set<std::string> names;
  for (const TracedCell& cell : cells) {
    for (const TracedArm& arm : cell.arms) {
      for (const auto& [name, ns] : stages_of(*arm.trace)) {
        names.insert(name);
      }
    }
  }
  std::vector<std::string> order;
  for (const char* known : kKnownStages) {
    if (names.erase(known) > 0) {
      order.emplace_back(known);
    }
  }
  names.erase(kResidual);
  order.insert(order.end(), names.begin(), names.end());
  order.emplace_back(kResidual);
  return order;
}

std::string trace_command(const RunRecord& run) { return fmt::format("decodelab trace --run {}", run.id); }

}  // namespace decodelab
