// Lays the contrasts of a run out by launch, adds the composites, and decides them as one family.
#include "reports/statistics/family.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "reports/statistics/adaptive.h"
#include "reports/statistics/sign_flip.h"

namespace decodelab {
namespace {

// The contrast of each launch, NaN where the launch has none.
std::vector<double> by_launch(const Comparison& comparison, std::size_t launches) {
  std::vector<double> values(launches, kMissing);
  for (const auto& [launch, contrast] : mean_contrasts(comparison)) {
    values.at(static_cast<std::size_t>(launch)) = contrast;
  }
  return values;
}

Interval exp_of(const Interval& logarithms) { return {std::exp(logarithms.low), std::exp(logarithms.high)}; }

bool is_saturated(const SummaryRow& row) {
  return std::find(row.flags.begin(), row.flags.end(), kSaturatedFlag) != row.flags.end();
}

// In a shard, and in a merge of some shards, the contrasts that other shards measure are still missing from the family.
bool is_whole(const RunSummary& summary) {
  return std::none_of(summary.rows.begin(), summary.rows.end(),
                      [](const SummaryRow& row) { return row.status == RowStatus::planned && row.blocks == 0; });
}

struct Contrast {
  SummaryRow* row;
  std::vector<double> values;
};

std::vector<double> composite_values(const std::vector<const Contrast*>& contrasts) {
  std::vector<const CellRecord*> cells;
  std::vector<std::span<const double>> values;
  for (const Contrast* contrast : contrasts) {
    cells.push_back(&contrast->row->cell);
    values.emplace_back(contrast->values);
  }
  return weighted_sum(composite_weights(cells), values);
}

// One composite for each arm with at least two cells; its values by launch go to the end of `family`.
void add_composites(RunSummary& summary, const std::vector<Contrast>& contrasts,
                    std::vector<std::vector<double>>& family) {
  for (const ArmRecord& arm : summary.arms) {
    std::vector<const Contrast*> of_arm;
    for (const Contrast& contrast : contrasts) {
      if (contrast.row->arm.id == arm.id) {
        of_arm.push_back(&contrast);
      }
    }
    if (of_arm.size() < 2) {
      continue;
    }
    const std::vector<double> values = composite_values(of_arm);
    const std::vector<double> whole = without_gaps(values);
    if (whole.empty()) {
      continue;
    }
    Composite composite{.arm = arm,
                        .cells = std::ssize(of_arm),
                        .time_ratio = std::exp(mean(whole)),
                        .interval = mean_interval(whole),
                        .decision = {}};
    if (composite.interval) {
      composite.interval = exp_of(*composite.interval);
    }
    summary.composites.push_back(composite);
    family.push_back(values);
  }
}

}  // namespace

std::vector<double> composite_weights(const std::vector<const CellRecord*>& cells) {
  std::map<Phase, std::map<std::int64_t, double>> lengths;
  for (const CellRecord* cell : cells) {
    ++lengths[cell->phase][cell->batch];
  }
  std::vector<double> weights;
  for (const CellRecord* cell : cells) {
    const auto& batches = lengths.at(cell->phase);
    weights.push_back(
        1 / (static_cast<double>(lengths.size()) * static_cast<double>(batches.size()) * batches.at(cell->batch)));
  }
  return weights;
}

std::vector<double> weighted_sum(std::span<const double> weights, std::span<const std::span<const double>> values) {
  std::vector<double> sums(values.empty() ? 0 : values.front().size(), 0.0);
  for (std::size_t j = 0; j < values.size(); ++j) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += weights[j] * values[j][i];
    }
  }
  return sums;
}

void decide(RunSummary& summary) {
  std::int64_t last_launch = -1;
  for (const SummaryRow& row : summary.rows) {
    for (const BlockContrast& block : row.comparison.blocks) {
      last_launch = std::max(last_launch, block.launch);
    }
  }
  const auto launches = static_cast<std::size_t>(last_launch + 1);
  std::vector<Contrast> contrasts;
  std::vector<std::vector<double>> family;
  for (SummaryRow& row : summary.rows) {
    if (row.comparison.blocks.empty()) {
      continue;
    }
    contrasts.push_back({&row, by_launch(row.comparison, launches)});
    family.push_back(contrasts.back().values);
  }
  add_composites(summary, contrasts, family);

  std::vector<AdaptiveContrast> decided;
  if (summary.adaptive) {
    decided = decide_adaptive(family);
  } else {
    for (Decision& decision : decide_family(family)) {
      decided.push_back({std::move(decision), std::nullopt});
    }
  }
  const bool whole = is_whole(summary);
  for (std::size_t j = 0; j < decided.size(); ++j) {
    Decision& decision = decided[j].decision;
    if (summary.run.ended_unix_ns == 0) {
      decision.verdict.reset();
      decision.reason = "the run is not finished";
    } else if (!whole) {
      decision.verdict.reset();
      decision.reason = "a part of the plan has not run";
    }
    if (j >= contrasts.size()) {
      Composite& composite = summary.composites[j - contrasts.size()];
      composite.decision = decision;
      if (decided[j].interval) {
        composite.interval = exp_of(*decided[j].interval);
      }
      continue;
    }
    SummaryRow& row = *contrasts[j].row;
    if (decided[j].interval) {
      row.comparison.interval = exp_of(*decided[j].interval);
      row.time_ratio_low = row.comparison.interval->low;
      row.time_ratio_high = row.comparison.interval->high;
    }
    if (is_saturated(row)) {
      decision.verdict.reset();
      decision.reason =
          fmt::format("other processes used more than {:.0f} % of the machine's core time", 100 * kSaturatedShare);
    }
    row.decision = decision;
    if (decision.mde) {
      row.mde = decision.mde;
    }
  }
}

}  // namespace decodelab
