// Rows of a run from its samples: order statistics, percentiles by rule, paired ratios.
#include "reports/statistics/summary.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "reports/statistics/adaptive.h"
#include "reports/statistics/family.h"
#include "reports/statistics/gate_policy.h"
#include "reports/store/flags.h"

namespace decodelab {
namespace {

using Blocks = std::vector<const BlockRecord*>;

std::optional<std::int64_t> whole_ns(double ns) { return std::llround(ns); }

void add_flag(SummaryRow& row, const std::string& flag) {
  if (std::find(row.flags.begin(), row.flags.end(), flag) == row.flags.end()) {
    row.flags.push_back(flag);
  }
}

// Counts, order statistics and percentiles of the pooled steps.
void add_times(SummaryRow& row, const Blocks& blocks) {
  std::vector<double> samples;
  std::set<std::int64_t> launches;
  bool quiet = true;
  bool whole_periods = true;
  for (const BlockRecord* block : blocks) {
    bool timed = false;
    for (const VisitRecord& visit : block->visits) {
      if (visit.arm_id != row.arm.id || visit.samples_ns.empty()) {
        continue;
      }
      timed = true;
      samples.insert(samples.end(), visit.samples_ns.begin(), visit.samples_ns.end());
      row.warmup = std::max(row.warmup, visit.warmup_steps);
      quiet = quiet && visit.quiet;
      whole_periods = whole_periods && std::ssize(visit.samples_ns) % kPeriodSteps == 0;
    }
    if (!timed) {
      continue;
    }
    ++row.blocks;
    launches.insert(block->launch);
  }
  if (samples.empty()) {
    return;
  }
  std::sort(samples.begin(), samples.end());
  row.launches = std::ssize(launches);
  row.steps = std::ssize(samples);
  row.median_ns = whole_ns(quantile(samples, 0.5));
  row.mean_ns = whole_ns(mean(samples));
  row.min_ns = whole_ns(samples.front());
  row.max_ns = whole_ns(samples.back());
  std::optional<std::int64_t>* const percentiles[] = {&row.p90_ns, &row.p95_ns, &row.p99_ns};
  for (std::size_t i = 0; i < std::size(kPercentileRules); ++i) {
    const PercentileRule& rule = kPercentileRules[i];
    if (row.steps >= rule.steps && row.launches >= rule.launches) {
      *percentiles[i] = whole_ns(quantile(samples, rule.share));
    }
  }
  if (!quiet) {
    add_flag(row, kWarmUpNotQuietFlag);
  }
  // Every step of a prefill is the same.
  if (!whole_periods && row.cell.phase == Phase::decode) {
    add_flag(row, kPeriodNotCoveredFlag);
  }
  if (row.launches == 1) {
    add_flag(row, kThisProcessOnly);
  }
}

void add_cell_mean(SummaryRow& row, const Blocks& blocks) {
  row.launch_means_ns = launch_means(blocks, row.arm.id);
  if (row.launch_means_ns.empty()) {
    return;
  }
  std::vector<double> values;
  for (const auto& [launch, ns] : row.launch_means_ns) {
    values.push_back(ns);
  }
  row.cell_mean_ns = mean(values);
  row.cell_mean_interval_ns = mean_interval(values);
}

void add_comparison(SummaryRow& row, const Blocks& blocks, const ArmRecord* baseline, bool baseline_comparable) {
  if (baseline == nullptr || !row.comparable() || row.blocks == 0) {
    return;
  }
  if (row.arm.id == baseline->id) {
    row.time_ratio = 1;
    row.speedup = 1;
    return;
  }
  if (!baseline_comparable || row.arm.roofline()) {
    return;
  }
  const ValidBlocks valid = valid_blocks(blocks);
  if (valid.void_blocks > 0) {
    add_flag(row, kVoidBlocksFlag);
  }
  if (valid.disturbed) {
    add_flag(row, valid.saturated ? kSaturatedFlag : kDisturbedFlag);
  }
  row.comparison = compare_arms(valid.blocks, row.arm.id, baseline->id);
  row.time_ratio = row.comparison.time_ratio;
  if (row.time_ratio) {
    row.speedup = 1 / *row.time_ratio;
  }
  row.mde = row.comparison.mde;
  if (!row.comparison.interval) {
    return;
  }
  row.time_ratio_low = row.comparison.interval->low;
  row.time_ratio_high = row.comparison.interval->high;
}

// Returns the bytes that the arm must read over those that the roofline reads; none where they are the same.
std::optional<double> share_of_bytes(const SummaryRow& row) {
  const auto saved = row.counters.find(kSavedBytes);
  if (saved == row.counters.end()) {
    return std::nullopt;
  }
  const auto reads =
      static_cast<double>(row.counters.at("modelled_weight_bytes") + row.counters.at("modelled_kv_bytes"));
  return reads / (reads + static_cast<double>(saved->second));
}

// Sets the share of the bound, from pairs: the time of the slower of both rooflines over the arm's. Where weights are
// held in other bits than the cell's it is that of their bytes alone: how fast they could be multiplied was not
// measured.
void add_bound_share(SummaryRow& row, const Blocks& blocks, const std::vector<ArmRecord>& arms) {
  if (row.blocks == 0 || row.arm.roofline() || !row.comparable()) {
    return;
  }
  std::map<std::int64_t, double> bound;
  const std::optional<double> of_bytes = share_of_bytes(row);
  if (!of_bytes && std::ranges::find(row.flags, kLossyFlag) != row.flags.end()) {
    return;  // Another engine's weights are held in fewer bits, and how many bytes that is was not told.
  }
  for (const ArmRecord& arm : arms) {
    if (!arm.roofline() || (of_bytes && arm.label != kRooflineRead)) {
      continue;
    }
    for (const auto& [launch, share] : mean_contrasts(compare_arms(blocks, arm.id, row.arm.id))) {
      const auto [held, added] = bound.emplace(launch, share);
      if (!added) {
        held->second = std::max(held->second, share);
      }
    }
  }
  if (bound.empty()) {
    return;
  }
  std::vector<double> shares;
  for (const auto& [launch, share] : bound) {
    shares.push_back(share + std::log(of_bytes.value_or(1)));
  }
  row.bound_share = std::exp(mean(shares));
  if (const auto interval = mean_interval(shares)) {
    row.bound_share_low = std::exp(interval->low);
    row.bound_share_high = std::exp(interval->high);
  }
}

// Runs after the verdict, since one of the flags depends on it.
void add_checks(SummaryRow& row, const Blocks& blocks, const ArmRecord& baseline) {
  const double margin = GatePolicy().margin_of(row.cell);
  const RowChecks checks =
      check_row(blocks, row.cell.slice_steps, row.arm.id, baseline.id, margin, row.decision.verdict);
  row.carry_over = checks.carry_over;
  for (const std::string& flag : checks.flags) {
    add_flag(row, flag);
  }
}

SummaryRow start_row(const RunData& data, const CellRecord& cell, const ArmRecord& arm, const CellArmRecord& fate) {
  SummaryRow row;
  row.run_id = data.run.id;
  row.cell = cell;
  row.arm = arm;
  row.model = data.run.model.name;
  row.status = fate.status;
  row.reason = fate.reason;
  row.engaged = fate.engaged;
  row.peak_bytes = fate.peak_bytes;
  row.flags = fate.flags;
  row.counters = fate.counters;
  row.ties = fate.ties;
  row.agreement = fate.agreement;
  const auto quality = std::ranges::find(data.qualities, arm.id, &QualityRecord::arm_id);
  if (quality != data.qualities.end()) {
    row.quality = *quality;
  }
  return row;
}

template <class Record>
std::unordered_map<std::int64_t, const Record*> by_id(const std::vector<Record>& records) {
  std::unordered_map<std::int64_t, const Record*> index;
  for (const Record& record : records) {
    index.emplace(record.id, &record);
  }
  return index;
}

}  // namespace

double SummaryRow::plotted_length() const {
  const double length = static_cast<double>(cell.length);
  return cell.phase == Phase::decode && cell.steps > 1 ? length + static_cast<double>(cell.steps - 1) / 2 : length;
}

std::string RunSummary::baseline() const {
  for (const ArmRecord& arm : arms) {
    if (arm.baseline) {
      return arm.label;
    }
  }
  return {};
}

RunSummary summarize(const RunData& data) {
  // Runs of tests and of other tools may have a plan that is no object.
  const auto plan = parse_json_or_discard(data.run.plan_json);
  RunSummary summary{.run = data.run,
                     .arms = data.arms,
                     .rows = {},
                     .composites = {},
                     .times_spent = data.times_spent,
                     .adaptive = is_adaptive(data.run),
                     .ablation = plan.is_object() ? plan.value("ablate", std::string()) : std::string()};
  const auto cells = by_id(data.cells);
  const auto arms = by_id(data.arms);
  std::unordered_map<std::int64_t, Blocks> blocks_of_cell;
  for (const BlockRecord& block : data.blocks) {
    blocks_of_cell[block.cell_id].push_back(&block);
  }
  const auto baseline =
      std::find_if(data.arms.begin(), data.arms.end(), [](const ArmRecord& arm) { return arm.baseline; });
  const ArmRecord* const baseline_arm = baseline == data.arms.end() ? nullptr : &*baseline;

  std::set<std::int64_t> cells_with_baseline;
  for (const CellArmRecord& fate : data.cell_arms) {
    const auto cell = cells.find(fate.cell_id);
    const auto arm = arms.find(fate.arm_id);
    if (cell == cells.end() || arm == arms.end()) {
      throw std::invalid_argument(
          fmt::format("Run {} has a row for cell {} and arm {}, but not both of them. The store is damaged.",
                      data.run.id, fate.cell_id, fate.arm_id));
    }
    summary.rows.push_back(start_row(data, *cell->second, *arm->second, fate));
    if (arm->second == baseline_arm && summary.rows.back().comparable()) {
      cells_with_baseline.insert(fate.cell_id);
    }
  }
  for (SummaryRow& row : summary.rows) {
    const Blocks& blocks = blocks_of_cell[row.cell.id];
    add_times(row, blocks);
    add_cell_mean(row, blocks);
    add_comparison(row, blocks, baseline_arm, cells_with_baseline.contains(row.cell.id));
    add_bound_share(row, blocks, data.arms);
  }
  decide(summary);
  if (baseline_arm != nullptr) {
    std::unordered_map<std::int64_t, std::optional<LaunchEffect>> slots;  // of a cell, whatever the arm
    for (SummaryRow& row : summary.rows) {
      if (row.comparison.blocks.empty()) {
        continue;
      }
      const Blocks& blocks = blocks_of_cell[row.cell.id];
      const auto [slot, added] = slots.try_emplace(row.cell.id);
      if (added) {
        slot->second = slot_effect(blocks);
      }
      row.slot = slot->second;
      add_checks(row, blocks, *baseline_arm);
    }
  }
  return summary;
}

}  // namespace decodelab
