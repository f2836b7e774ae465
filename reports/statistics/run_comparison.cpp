// Matches cells and arms of two runs and compares their launches.
#include "reports/statistics/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>

#include "reports/statistics/adaptive.h"
#include "reports/statistics/comparison.h"
#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

using CellKey =
    std::tuple<Phase, std::int64_t, std::int64_t, std::string, std::string, std::int64_t, std::string, std::string>;

CellKey key_of(const CellRecord& cell) {
  return {cell.phase, cell.batch, cell.length, cell.dtype, cell.device, cell.threads, cell.scope, cell.fill};
}

std::vector<const BlockRecord*> blocks_of(const RunData& data, std::int64_t cell_id) {
  std::vector<const BlockRecord*> blocks;
  for (const BlockRecord& block : data.blocks) {
    if (block.cell_id == cell_id) {
      blocks.push_back(&block);
    }
  }
  return valid_blocks(blocks).blocks;
}

const ArmRecord& arm_of(const RunData& data, const std::string& label) {
  for (const ArmRecord& arm : data.arms) {
    if (arm.label == label) {
      return arm;
    }
  }
  std::string known;
  for (const ArmRecord& arm : data.arms) {
    known += (known.empty() ? "" : ", ") + arm.label;
  }
  throw std::invalid_argument(fmt::format("Run {} has no arm '{}'; it has {}.", data.run.id, label, known));
}

std::vector<std::pair<const ArmRecord*, const ArmRecord*>> pairs_of(const ComparedSide& baseline,
                                                                    const ComparedSide& candidate) {
  std::vector<std::pair<const ArmRecord*, const ArmRecord*>> pairs;
  if (!baseline.arm.empty() || !candidate.arm.empty()) {
    const std::string& first = baseline.arm.empty() ? candidate.arm : baseline.arm;
    const std::string& second = candidate.arm.empty() ? baseline.arm : candidate.arm;
    pairs.emplace_back(&arm_of(*baseline.data, first), &arm_of(*candidate.data, second));
    return pairs;
  }
  for (const ArmRecord& arm : candidate.data->arms) {
    for (const ArmRecord& other : baseline.data->arms) {
      if (other.label == arm.label) {
        pairs.emplace_back(&other, &arm);
      }
    }
  }
  if (pairs.empty()) {
    throw std::invalid_argument(fmt::format("Runs {} and {} have no arm in common; name one of each: RUN:ARM.",
                                            baseline.data->run.id, candidate.data->run.id));
  }
  return pairs;
}

std::vector<double> log_launches(const std::vector<const BlockRecord*>& blocks, std::int64_t arm_id) {
  std::vector<double> logs;
  for (const auto& [launch, ns] : launch_means(blocks, arm_id)) {
    logs.push_back(std::log(ns));
  }
  return logs;
}

CellArmRecord fate_of(const RunData& data, std::int64_t cell_id, std::int64_t arm_id) {
  for (const CellArmRecord& row : data.cell_arms) {
    if (row.cell_id == cell_id && row.arm_id == arm_id) {
      return row;
    }
  }
  return {};
}

// Why the times of such a row, if there are any, mean nothing; else empty.
std::string exclusion(const char* side, const CellArmRecord& fate) {
  if (comparable(fate.status, fate.engaged)) {
    return "";
  }
  return fmt::format("{} is {}{}{}", side,
                     fate.engaged == false ? to_string(RowStatus::not_engaged) : to_string(fate.status),
                     fate.reason.empty() ? "" : ": ", fate.reason);
}

std::optional<double> mean_of_launches(const std::vector<const BlockRecord*>& blocks, std::int64_t arm_id) {
  std::vector<double> values;
  for (const auto& [launch, ns] : launch_means(blocks, arm_id)) {
    values.push_back(ns);
  }
  return values.empty() ? std::nullopt : std::optional(mean(values));
}

// All cells of one comparison are one family, whatever the number of pairs.
void decide(std::vector<ComparedCell>& rows, const std::vector<std::map<std::int64_t, double>>& contrasts,
            const RunRecord& run) {
  const char* const forbidden = run.ended_unix_ns == 0 ? "the run is not finished"
                                : is_adaptive(run)
                                    ? "the run grew until it could decide, and its own report has its verdicts"
                                    : nullptr;
  if (forbidden != nullptr) {
    for (ComparedCell& row : rows) {
      row.decision.reason = forbidden;
    }
    return;
  }
  std::set<std::int64_t> launches;
  for (const auto& row : contrasts) {
    for (const auto& [launch, contrast] : row) {
      launches.insert(launch);
    }
  }
  std::vector<std::vector<double>> family;
  std::vector<ComparedCell*> decided;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (contrasts[i].empty()) {
      continue;
    }
    std::vector<double>& values = family.emplace_back();
    for (const std::int64_t launch : launches) {
      const auto found = contrasts[i].find(launch);
      values.push_back(found == contrasts[i].end() ? std::numeric_limits<double>::quiet_NaN() : found->second);
    }
    decided.push_back(&rows[i]);
  }
  if (family.empty()) {
    return;
  }
  const std::vector<Decision> decisions = decide_family(family);
  for (std::size_t i = 0; i < decided.size(); ++i) {
    decided[i]->decision = decisions[i];
  }
}

std::map<std::int64_t, double> compare_paired(ComparedCell& row, const std::vector<const BlockRecord*>& blocks,
                                              const ArmRecord& baseline, const ArmRecord& arm) {
  const Comparison comparison = compare_arms(blocks, arm.id, baseline.id);
  row.paired = true;
  row.launches = row.baseline_launches = std::ssize(comparison.launch_contrasts);
  row.time_ratio = comparison.time_ratio;
  row.interval = comparison.interval;
  return mean_contrasts(comparison);
}

void compare_unpaired(ComparedCell& row, const std::vector<double>& baseline, const std::vector<double>& candidate) {
  row.launches = std::ssize(candidate);
  row.baseline_launches = std::ssize(baseline);
  if (baseline.empty() || candidate.empty()) {
    return;
  }
  row.time_ratio = std::exp(mean(candidate) - mean(baseline));
  if (const auto interval = welch_interval(candidate, baseline)) {
    row.interval = Interval{std::exp(interval->low), std::exp(interval->high)};
  }
}

}  // namespace

std::optional<Interval> welch_interval(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) {
    return std::nullopt;
  }
  // s^2 / n and its share of the degrees of freedom (Welch 1947, doi:10.1093/biomet/34.1-2.28).
  const auto squared_error = [](std::span<const double> values) {
    const double deviation = standard_deviation(values);
    return deviation * deviation / static_cast<double>(values.size());
  };
  const double of_a = squared_error(a);
  const double of_b = squared_error(b);
  const double difference = mean(a) - mean(b);
  const double total = of_a + of_b;
  if (total == 0) {
    return Interval{difference, difference};
  }
  const double freedom =
      total * total /
      (of_a * of_a / static_cast<double>(a.size() - 1) + of_b * of_b / static_cast<double>(b.size() - 1));
  const double half = boost::math::quantile(boost::math::students_t(freedom), kTwoSided95) * std::sqrt(total);
  return Interval{difference - half, difference + half};
}

std::vector<ComparedCell> compare_runs(const ComparedSide& baseline, const ComparedSide& candidate) {
  const bool same_run = baseline.data->run.uuid == candidate.data->run.uuid;
  if (same_run && (baseline.arm.empty() || candidate.arm.empty() || baseline.arm == candidate.arm)) {
    throw std::invalid_argument(
        fmt::format("Both sides are run {}: name two of its arms, RUN:ARM RUN:ARM.", candidate.data->run.id));
  }
  std::vector<ComparedCell> rows;
  std::vector<std::map<std::int64_t, double>> contrasts;
  for (const auto& [base_arm, arm] : pairs_of(baseline, candidate)) {
    for (const CellRecord& cell : candidate.data->cells) {
      const auto other = std::ranges::find_if(baseline.data->cells,
                                              [&](const CellRecord& record) { return key_of(record) == key_of(cell); });
      if (other == baseline.data->cells.end()) {
        continue;
      }
      ComparedCell row{.cell = cell, .arm = arm->label, .baseline_arm = base_arm->label};
      const CellArmRecord before = fate_of(*baseline.data, other->id, base_arm->id);
      const CellArmRecord after = fate_of(*candidate.data, cell.id, arm->id);
      const auto blocks = blocks_of(*candidate.data, cell.id);
      const auto blocks_before = same_run ? blocks : blocks_of(*baseline.data, other->id);
      row.baseline_ns = mean_of_launches(blocks_before, base_arm->id);
      row.candidate_ns = mean_of_launches(blocks, arm->id);
      row.reason = exclusion("the baseline", before);
      if (row.reason.empty()) {
        row.reason = exclusion("the candidate", after);
      }
      contrasts.emplace_back();
      if (!row.reason.empty()) {
        row.baseline_launches = std::ssize(launch_means(blocks_before, base_arm->id));
        row.launches = std::ssize(launch_means(blocks, arm->id));
      } else if (same_run) {
        contrasts.back() = compare_paired(row, blocks, *base_arm, *arm);
      } else {
        compare_unpaired(row, log_launches(blocks_before, base_arm->id), log_launches(blocks, arm->id));
      }
      if (!row.time_ratio && row.reason.empty()) {
        row.reason =
            fmt::format("{} was not timed here", row.baseline_launches == 0 ? "the baseline" : "the candidate");
      }
      row.baseline_cell_id = other->id;
      row.baseline_counters = before.counters;
      row.counters = after.counters;
      row.moves = stage_moves({baseline.data, &*other, base_arm}, {candidate.data, &cell, arm});
      rows.push_back(std::move(row));
    }
  }
  if (same_run) {
    decide(rows, contrasts, candidate.data->run);
  }
  if (rows.empty()) {
    throw std::invalid_argument(
        fmt::format("Runs {} and {} have no cell in common (phase, batch, length, dtype, device, "
                    "threads, scope and fill must be equal).",
                    baseline.data->run.id, candidate.data->run.id));
  }
  return rows;
}

std::vector<OneSidedRow> one_sided_rows(const ComparedSide& baseline, const ComparedSide& candidate) {
  std::vector<OneSidedRow> rows;
  if (baseline.data->run.uuid == candidate.data->run.uuid) {
    return rows;
  }
  const auto pairs = pairs_of(baseline, candidate);
  const bool named = !baseline.arm.empty() || !candidate.arm.empty();
  const auto add = [&](const RunData& here, const RunData& there, bool in_baseline) {
    std::set<CellKey> cells_there;
    for (const CellRecord& cell : there.cells) {
      cells_there.insert(key_of(cell));
    }
    for (const ArmRecord& arm : here.arms) {
      const bool paired = std::ranges::any_of(
          pairs, [&](const auto& pair) { return (in_baseline ? pair.first : pair.second)->id == arm.id; });
      if (named && !paired) {
        continue;
      }
      for (const CellRecord& cell : here.cells) {
        if (!paired || !cells_there.contains(key_of(cell))) {
          rows.push_back({in_baseline, cell, arm.label});
        }
      }
    }
  };
  add(*baseline.data, *candidate.data, true);
  add(*candidate.data, *baseline.data, false);
  return rows;
}

std::vector<std::string> differences_of(const RunRecord& a, const RunRecord& b) {
  std::vector<std::string> words;
  const auto add = [&](const char* what, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) {
      words.push_back(fmt::format("{}: {} and {}", what, of_a, of_b));
    }
  };
  add("processor", a.machine.cpu, b.machine.cpu);
  add("cores", std::to_string(a.machine.cores), std::to_string(b.machine.cores));
  add("vector extensions", a.machine.isa, b.machine.isa);
  add("accelerator", a.machine.accelerator, b.machine.accelerator);
  add("commit", a.build.commit, b.build.commit);
  add("libtorch", a.build.libtorch, b.build.libtorch);
  add("model", a.model.name, b.model.name);
  return words;
}

}  // namespace decodelab
