// Paired contrasts per block, averaged per launch, with Student's t over launches.
#include "reports/statistics/comparison.h"

#include <cmath>
#include <map>

namespace decodelab {
namespace {

// Logarithms of the visit statistics of an arm, in the order of its visits.
std::vector<double> log_visits(const BlockRecord& block, std::int64_t arm_id) {
  std::vector<double> logs;
  for (const VisitRecord& visit : block.visits) {
    if (visit.arm_id != arm_id || visit.samples_ns.empty()) continue;
    if (const double ns = visit_statistic(visit.samples_ns); ns > 0) logs.push_back(std::log(ns));
  }
  return logs;
}

using ByLaunch = std::map<std::int64_t, std::vector<double>>;

std::map<std::int64_t, double> means(const ByLaunch& values_by_launch) {
  std::map<std::int64_t, double> result;
  for (const auto& [launch, values] : values_by_launch) result[launch] = mean(values);
  return result;
}

std::vector<double> values_of(const std::map<std::int64_t, double>& by_launch) {
  std::vector<double> values;
  for (const auto& [launch, value] : by_launch) values.push_back(value);
  return values;
}

}  // namespace

ValidBlocks valid_blocks(std::span<const BlockRecord* const> blocks_of_cell, double void_share, double most_void) {
  ValidBlocks result;
  for (const BlockRecord* block : blocks_of_cell) {
    if (block->other_cpu_share <= void_share) result.blocks.push_back(block);
  }
  result.void_blocks = std::ssize(blocks_of_cell) - std::ssize(result.blocks);
  if (static_cast<double>(result.void_blocks) > most_void * static_cast<double>(blocks_of_cell.size())) {
    double others = 0;
    for (const BlockRecord* block : blocks_of_cell) others += block->other_cpu_share;
    result = {.blocks = {blocks_of_cell.begin(), blocks_of_cell.end()},
              .void_blocks = 0,
              .disturbed = true,
              .saturated = others > kSaturatedShare * static_cast<double>(blocks_of_cell.size())};
  }
  return result;
}

Comparison compare_arms(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                        std::int64_t baseline_id) {
  Comparison result;
  ByLaunch nulls;
  for (const BlockRecord* block : blocks_of_cell) {
    const std::vector<double> arm = log_visits(*block, arm_id);
    const std::vector<double> baseline = log_visits(*block, baseline_id);
    if (arm.empty() || baseline.empty()) {
      ++result.skipped_blocks;
      continue;
    }
    BlockContrast contrast{.launch = block->launch,
                           .block = block->block,
                           .contrast = mean(arm) - mean(baseline),
                           .in_run_null = std::nullopt};
    if (arm.size() == 2 && baseline.size() == 2) {
      contrast.in_run_null = ((baseline[1] - baseline[0]) - (arm[1] - arm[0])) / 2;
      nulls[block->launch].push_back(*contrast.in_run_null);
    }
    result.blocks.push_back(contrast);
  }
  result.launch_contrasts = values_of(mean_contrasts(result));
  if (result.launch_contrasts.empty()) return result;
  result.time_ratio = std::exp(mean(result.launch_contrasts));
  if (const auto interval = mean_interval(result.launch_contrasts))
    result.interval = Interval{std::exp(interval->low), std::exp(interval->high)};
  if (const auto detectable = detectable_mean(result.launch_contrasts)) result.mde = std::expm1(*detectable);
  result.in_run_null = mean_interval(values_of(means(nulls)));
  return result;
}

std::map<std::int64_t, double> mean_contrasts(const Comparison& comparison) {
  ByLaunch contrasts;
  for (const BlockContrast& block : comparison.blocks) contrasts[block.launch].push_back(block.contrast);
  return means(contrasts);
}

std::vector<std::pair<std::int64_t, double>> launch_means(std::span<const BlockRecord* const> blocks_of_cell,
                                                          std::int64_t arm_id) {
  ByLaunch visits;
  for (const BlockRecord* block : blocks_of_cell) {
    for (const VisitRecord& visit : block->visits) {
      if (visit.arm_id == arm_id && !visit.samples_ns.empty())
        visits[block->launch].push_back(visit_statistic(visit.samples_ns));
    }
  }
  const std::map<std::int64_t, double> by_launch = means(visits);
  return {by_launch.begin(), by_launch.end()};
}

}  // namespace decodelab
