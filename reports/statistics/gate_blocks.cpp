// Sorts blocks into gate blocks and takes their contrasts.
#include "reports/statistics/gate_blocks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "reports/statistics/comparison.h"
#include "reports/statistics/sign_flip.h"

namespace decodelab {
namespace {

constexpr double kNanoseconds = 1e9;

using Blocks = std::vector<const BlockRecord*>;

bool is_of(const BlockRecord& block, const std::set<std::int64_t>& gate_blocks) {
  return block.launch >= 0 && gate_blocks.contains(block.launch / kLaunchesOfAGateBlock);
}

std::map<std::int64_t, Blocks> blocks_by_cell(const RunData& data, const std::vector<std::int64_t>& gate_blocks) {
  const std::set<std::int64_t> chosen(gate_blocks.begin(), gate_blocks.end());
  std::map<std::int64_t, Blocks> blocks;
  for (const BlockRecord& block : data.blocks) {
    if (is_of(block, chosen)) {
      blocks[block.cell_id].push_back(&block);
    }
  }
  return blocks;
}

bool has_times_of(const BlockRecord& block, const ArmRecord& arm) {
  return std::ranges::any_of(
      block.visits, [&](const VisitRecord& visit) { return visit.arm_id == arm.id && !visit.samples_ns.empty(); });
}

// Returns the first and the last start of a block within each gate block.
std::vector<std::pair<std::int64_t, std::int64_t>> spans_of(const RunData& data,
                                                            const std::vector<std::int64_t>& gate_blocks) {
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> spans;
  const std::set<std::int64_t> chosen(gate_blocks.begin(), gate_blocks.end());
  for (const BlockRecord& block : data.blocks) {
    if (!is_of(block, chosen)) {
      continue;
    }
    const std::int64_t start = block.started_unix_ns;
    const auto [span, added] = spans.try_emplace(block.launch / kLaunchesOfAGateBlock, start, start);
    span->second = {std::min(span->second.first, start), std::max(span->second.second, start)};
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const auto& [index, span] : spans) {
    result.push_back(span);
  }
  return result;
}

}  // namespace

std::optional<std::string> find_gate_arms(const RunData& data, GateArms& arms) {
  arms = {};
  for (const ArmRecord& arm : data.arms) {
    const ArmRecord*& place = arm.baseline ? arms.baseline : arms.candidate;
    if (place != nullptr) {
      return fmt::format("a gate compares one candidate with one baseline, and the run has two {}",
                         arm.baseline ? "baselines" : "candidates");
    }
    place = &arm;
  }
  if (arms.baseline == nullptr) {
    return "the run has no arm that is marked as the baseline";
  }
  if (arms.candidate == nullptr) {
    return "the run has no candidate, only the baseline";
  }
  return std::nullopt;
}

std::vector<std::int64_t> gate_blocks_of(const RunData& data) {
  std::map<std::int64_t, std::set<std::int64_t>> cells_of_launch;
  for (const BlockRecord& block : data.blocks) {
    cells_of_launch[block.launch].insert(block.cell_id);
  }
  std::vector<std::int64_t> indices;
  for (const auto& [launch, cells] : cells_of_launch) {
    if (launch >= 0 && launch % kLaunchesOfAGateBlock == 0 && cells_of_launch.contains(launch + 1)) {
      indices.push_back(launch / kLaunchesOfAGateBlock);
    }
  }
  if (indices.empty()) {
    return indices;
  }
  const auto& [last_launch, last_cells] = *cells_of_launch.rbegin();
  const bool goes_on = data.run.ended_unix_ns == 0 && last_cells.size() < data.cells.size();
  if (goes_on && last_launch / kLaunchesOfAGateBlock == indices.back()) {
    indices.pop_back();
  }
  return indices;
}

std::vector<GateCell> gate_cells(const RunData& data, const GateArms& arms,
                                 const std::vector<std::int64_t>& gate_blocks, double void_share) {
  std::map<std::int64_t, Blocks> blocks = blocks_by_cell(data, gate_blocks);
  std::vector<GateCell> cells;
  for (const CellRecord& record : data.cells) {
    GateCell cell{.cell = record, .values = {}, .launch_order = {}};
    const Blocks& of_cell = blocks[record.id];
    const Blocks quiet = quiet_blocks(of_cell, void_share);
    cell.blocks = std::ssize(of_cell);
    cell.void_blocks = std::ssize(of_cell) - std::ssize(quiet);
    const auto launches = mean_contrasts(compare_arms(quiet, arms.candidate->id, arms.baseline->id));
    for (const std::int64_t index : gate_blocks) {
      const auto baseline_first = launches.find(kLaunchesOfAGateBlock * index);
      const auto candidate_first = launches.find(kLaunchesOfAGateBlock * index + 1);
      const bool whole = baseline_first != launches.end() && candidate_first != launches.end();
      cell.values.push_back(whole ? (candidate_first->second + baseline_first->second) / 2 : kMissing);
      cell.launch_order.push_back(whole ? (candidate_first->second - baseline_first->second) / 2 : kMissing);
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<GateProblem> missing_times(const RunData& data, const GateArms& arms,
                                       const std::vector<std::int64_t>& gate_blocks, double void_share) {
  std::vector<GateProblem> problems;
  auto blocks = blocks_by_cell(data, gate_blocks);
  for (const CellRecord& cell : data.cells) {
    std::string words;
    std::set<std::int64_t> launches;
    for (const BlockRecord* block : blocks[cell.id]) {
      launches.insert(block->launch);
      const bool baseline = has_times_of(*block, *arms.baseline);
      if (block->other_cpu_share > void_share || (baseline && has_times_of(*block, *arms.candidate))) {
        continue;
      }
      words = fmt::format("the {} has no times in launch {}", baseline ? "candidate" : "baseline", block->launch);
    }
    for (const std::int64_t index : gate_blocks) {
      for (const std::int64_t launch : {kLaunchesOfAGateBlock * index, kLaunchesOfAGateBlock * index + 1}) {
        if (!launches.contains(launch)) {
          words = fmt::format("launch {} has no block of it", launch);
        }
      }
    }
    if (!words.empty()) {
      problems.push_back({cell, words});  // one problem per cell is enough
    }
  }
  return problems;
}

std::optional<double> gate_block_seconds(const RunData& data, const std::vector<std::int64_t>& gate_blocks) {
  const auto spans = spans_of(data, gate_blocks);
  if (spans.size() < 2) {
    return std::nullopt;
  }
  std::vector<double> seconds;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    seconds.push_back(static_cast<double>(spans[i].first - spans[i - 1].first) / kNanoseconds);
  }
  std::ranges::sort(seconds);
  return std::max(0.0, quantile(seconds, 0.5));
}

double gate_elapsed_seconds(const RunData& data, const std::vector<std::int64_t>& gate_blocks) {
  const auto spans = spans_of(data, gate_blocks);
  if (spans.empty()) {
    return 0;
  }
  return static_cast<double>(spans.back().second - spans.front().first) / kNanoseconds;
}

}  // namespace decodelab
