// Paired contrasts per block, averaged per launch, with Student's t over launches.
#include "reports/statistics/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "reports/statistics/paired_steps.h"

namespace decodelab {
namespace {

// Pairs the k-th visit of the arm with the k-th of the baseline: they ran in the same half of the block.
std::vector<VisitPair> visit_pairs(const BlockRecord& block, std::int64_t arm_id, std::int64_t baseline_id) {
  std::vector<VisitPair> pairs;
  std::size_t arms = 0;
  std::size_t baselines = 0;
  for (const VisitRecord& visit : block.visits) {
    const bool arm = visit.arm_id == arm_id;
    if ((!arm && visit.arm_id != baseline_id) || visit.samples_ns.empty()) {
      continue;
    }
    std::size_t& place = arm ? arms : baselines;
    if (pairs.size() == place) {
      pairs.emplace_back();
    }
    (arm ? pairs[place].arm_ns : pairs[place].baseline_ns) = visit.samples_ns;
    ++place;
  }
  pairs.resize(std::min(arms, baselines));
  return pairs;
}

using ByLaunch = std::map<std::int64_t, std::vector<double>>;

std::map<std::int64_t, double> means(const ByLaunch& values_by_launch) {
  std::map<std::int64_t, double> result;
  for (const auto& [launch, values] : values_by_launch) {
    result[launch] = mean(values);
  }
  return result;
}

std::vector<double> values_of(const std::map<std::int64_t, double>& by_launch) {
  std::vector<double> values;
  for (const auto& [launch, value] : by_launch) {
    values.push_back(value);
  }
  return values;
}

}  // namespace

std::vector<const BlockRecord*> quiet_blocks(std::span<const BlockRecord* const> blocks, double share) {
  std::vector<const BlockRecord*> quiet;
  std::ranges::copy_if(blocks, std::back_inserter(quiet),
                       [share](const BlockRecord* block) { return block->other_cpu_share <= share; });
  return quiet;
}

ValidBlocks valid_blocks(std::span<const BlockRecord* const> blocks_of_cell) {
  const std::vector<const BlockRecord*> quiet = quiet_blocks(blocks_of_cell, kVoidShare);
  const auto count = static_cast<double>(blocks_of_cell.size());
  if (count - static_cast<double>(quiet.size()) > kMostVoid * count) {
    double others = 0;
    for (const BlockRecord* block : blocks_of_cell) {
      others += block->other_cpu_share;
    }
    return {.blocks = {blocks_of_cell.begin(), blocks_of_cell.end()},
            .disturbed = true,
            .saturated = others > kSaturatedShare * count};
  }
  std::set<std::int64_t> launches;  // with a quiet block
  for (const BlockRecord* block : quiet) {
    launches.insert(block->launch);
  }
  ValidBlocks result;
  for (const BlockRecord* block : blocks_of_cell) {
    if (block->other_cpu_share <= (launches.contains(block->launch) ? kVoidShare : kSaturatedShare)) {
      result.blocks.push_back(block);
    }
  }
  result.void_blocks = std::ssize(blocks_of_cell) - std::ssize(result.blocks);
  result.disturbed = result.blocks.size() > quiet.size();
  return result;
}

Comparison compare_arms(std::span<const BlockRecord* const> blocks_of_cell, std::int64_t arm_id,
                        std::int64_t baseline_id) {
  Comparison result;
  ByLaunch nulls;
  for (const BlockRecord* block : blocks_of_cell) {
    const std::vector<VisitPair> pairs = visit_pairs(*block, arm_id, baseline_id);
    const std::optional<double> ratio = log_ratio_of_pairs(pairs);
    if (!ratio) {
      ++result.skipped_blocks;
      continue;
    }
    BlockContrast contrast{
        .launch = block->launch, .block = block->block, .contrast = *ratio, .in_run_null = std::nullopt};
    if (pairs.size() == 2) {
      const auto first = log_ratio_of_pairs(std::span(pairs).first(1));
      const auto second = log_ratio_of_pairs(std::span(pairs).last(1));
      if (first && second) {
        contrast.in_run_null = (*first - *second) / 2;
        nulls[block->launch].push_back(*contrast.in_run_null);
      }
    }
    result.blocks.push_back(contrast);
  }
  result.launch_contrasts = values_of(mean_contrasts(result));
  if (result.launch_contrasts.empty()) {
    return result;
  }
  result.time_ratio = std::exp(mean(result.launch_contrasts));
  if (const auto interval = mean_interval(result.launch_contrasts)) {
    result.interval = Interval{std::exp(interval->low), std::exp(interval->high)};
  }
  if (const auto detectable = detectable_mean(result.launch_contrasts)) {
    result.mde = std::expm1(*detectable);
  }
  result.in_run_null = mean_interval(values_of(means(nulls)));
  return result;
}

std::map<std::int64_t, double> mean_contrasts(const Comparison& comparison) {
  ByLaunch contrasts;
  for (const BlockContrast& block : comparison.blocks) {
    contrasts[block.launch].push_back(block.contrast);
  }
  return means(contrasts);
}

std::vector<std::pair<std::int64_t, double>> launch_means(std::span<const BlockRecord* const> blocks_of_cell,
                                                          std::int64_t arm_id) {
  ByLaunch visits;
  for (const BlockRecord* block : blocks_of_cell) {
    for (const VisitRecord& visit : block->visits) {
      if (visit.arm_id == arm_id && !visit.samples_ns.empty()) {
        visits[block->launch].push_back(visit_statistic(visit.samples_ns));
      }
    }
  }
  const std::map<std::int64_t, double> by_launch = means(visits);
  return {by_launch.begin(), by_launch.end()};
}

}  // namespace decodelab
