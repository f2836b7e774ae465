// Lays the contrasts of a run out by launch, adds the composites, and decides them as one family.
#include "reports/statistics/family.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// The contrast of each launch, NaN where the launch has none.
std::vector<double> by_launch(const Comparison& comparison, std::size_t launches) {
  std::vector<double> sums(launches, 0.0);
  std::vector<double> counts(launches, 0.0);
  for (const BlockContrast& block : comparison.blocks) {
    const auto launch = static_cast<std::size_t>(block.launch);
    if (launch >= launches) continue;
    sums[launch] += block.contrast;
    ++counts[launch];
  }
  for (std::size_t i = 0; i < launches; ++i) sums[i] = counts[i] > 0 ? sums[i] / counts[i] : kMissing;
  return sums;
}

bool is_saturated(const SummaryRow& row) {
  return std::find(row.flags.begin(), row.flags.end(), kSaturatedFlag) != row.flags.end();
}

// In a shard, and in a merge of some shards, whatever the others measure is still missing from the family.
bool is_whole(const RunSummary& summary) {
  return std::none_of(summary.rows.begin(), summary.rows.end(),
                      [](const SummaryRow& row) { return row.status == RowStatus::planned && row.blocks == 0; });
}

struct Contrast {
  SummaryRow* row;
  std::vector<double> values;
};

std::vector<double> composite_values(const std::vector<const Contrast*>& contrasts, std::size_t launches) {
  std::vector<const CellRecord*> cells;
  for (const Contrast* contrast : contrasts) cells.push_back(&contrast->row->cell);
  const std::vector<double> weights = composite_weights(cells);
  std::vector<double> values(launches, 0.0);
  for (std::size_t j = 0; j < contrasts.size(); ++j) {
    for (std::size_t i = 0; i < launches; ++i) values[i] += weights[j] * contrasts[j]->values[i];
  }
  return values;
}

std::vector<double> present(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) {
    if (!std::isnan(value)) result.push_back(value);
  }
  return result;
}

// One composite for each arm with at least two cells; its values by launch go to the end of `family`.
void add_composites(RunSummary& summary, const std::vector<Contrast>& contrasts, std::size_t launches,
                    std::vector<std::vector<double>>& family) {
  for (const ArmRecord& arm : summary.arms) {
    std::vector<const Contrast*> of_arm;
    for (const Contrast& contrast : contrasts) {
      if (contrast.row->arm.id == arm.id) of_arm.push_back(&contrast);
    }
    if (of_arm.size() < 2) continue;
    const std::vector<double> values = composite_values(of_arm, launches);
    const std::vector<double> whole = present(values);
    if (whole.empty()) continue;
    Composite composite{.arm = arm,
                        .cells = std::ssize(of_arm),
                        .time_ratio = std::exp(mean(whole)),
                        .interval = mean_interval(whole),
                        .decision = {}};
    if (composite.interval)
      composite.interval = {std::exp(composite.interval->low), std::exp(composite.interval->high)};
    summary.composites.push_back(composite);
    family.push_back(values);
  }
}

}  // namespace

std::vector<double> composite_weights(const std::vector<const CellRecord*>& cells) {
  std::map<std::string, std::map<std::int64_t, double>> lengths;
  for (const CellRecord* cell : cells) ++lengths[cell->phase][cell->batch];
  std::vector<double> weights;
  for (const CellRecord* cell : cells) {
    const auto& batches = lengths.at(cell->phase);
    weights.push_back(
        1 / (static_cast<double>(lengths.size()) * static_cast<double>(batches.size()) * batches.at(cell->batch)));
  }
  return weights;
}

void decide(RunSummary& summary) {
  std::int64_t last_launch = -1;
  for (const SummaryRow& row : summary.rows) {
    for (const BlockContrast& block : row.comparison.blocks) last_launch = std::max(last_launch, block.launch);
  }
  const auto launches = static_cast<std::size_t>(last_launch + 1);
  std::vector<Contrast> contrasts;
  std::vector<std::vector<double>> family;
  for (SummaryRow& row : summary.rows) {
    if (row.comparison.blocks.empty()) continue;
    contrasts.push_back({&row, by_launch(row.comparison, launches)});
    family.push_back(contrasts.back().values);
  }
  add_composites(summary, contrasts, launches, family);

  std::vector<Decision> decisions = decide_family(family);
  const bool whole = is_whole(summary);
  for (std::size_t j = 0; j < decisions.size(); ++j) {
    Decision& decision = decisions[j];
    if (summary.run.ended_unix_ns == 0) {
      decision.verdict.reset();
      decision.reason = "the run is not finished";
    } else if (!whole) {
      decision.verdict.reset();
      decision.reason = "a part of the plan has not run";
    }
    if (j >= contrasts.size()) {
      summary.composites[j - contrasts.size()].decision = decision;
      continue;
    }
    SummaryRow& row = *contrasts[j].row;
    if (is_saturated(row)) {
      decision.verdict.reset();
      decision.reason =
          fmt::format("other processes used more than {:.0f} % of the machine's core time", 100 * kSaturatedShare);
    }
    row.decision = decision;
    if (decision.mde) row.mde = decision.mde;
  }
}

}  // namespace decodelab
