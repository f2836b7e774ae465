// Estimates effects that should not be there, each with one value per launch.
#include "reports/statistics/row_checks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/statistics/comparison.h"

namespace decodelab {
namespace {

constexpr double kCarryOverShare = 1.0 / 3;
constexpr double kSlopeShare = 1.0 / 4;

using BlockSpan = std::span<const BlockRecord* const>;
using Samples = std::span<const std::int64_t>;

// Values by launch, and their mean.
class Launches {
 public:
  void add(std::int64_t launch, double value) { values_[launch].push_back(value); }

  std::optional<LaunchEffect> effect() const {
    std::vector<double> means;
    for (const auto& [launch, values] : values_) {
      means.push_back(mean(values));
    }
    const auto interval = mean_interval(means);
    if (!interval) {
      return std::nullopt;
    }
    return LaunchEffect{mean(means), *interval};
  }

 private:
  std::map<std::int64_t, std::vector<double>> values_;
};

// The two visits of an arm in a block, compared.
struct Pair {
  std::int64_t places = 0;  ///< From the first to the second; 1 for the arm in the middle.
  double difference = 0;    ///< Log of the second less that of the first.
};

std::map<std::int64_t, Pair> pairs_of(const BlockRecord& block) {
  std::map<std::int64_t, std::vector<const VisitRecord*>> visits;
  for (const VisitRecord& visit : block.visits) {
    if (!visit.samples_ns.empty()) {
      visits[visit.arm_id].push_back(&visit);
    }
  }
  std::map<std::int64_t, Pair> pairs;
  for (const auto& [arm, of_arm] : visits) {
    if (of_arm.size() != 2) {
      continue;
    }
    const double first = visit_statistic(of_arm[0]->samples_ns);
    const double second = visit_statistic(of_arm[1]->samples_ns);
    if (first > 0 && second > 0) {
      pairs[arm] = {of_arm[1]->position - of_arm[0]->position, std::log(second) - std::log(first)};
    }
  }
  return pairs;
}

double median_of(Samples samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return quantile(sorted, 0.5);
}

// Returns whether the arms of a block ran in slices: then no visit follows a single other one.
bool in_slices(const BlockRecord& block) {
  return block.visits.size() > 1 && std::ranges::none_of(block.visits, &VisitRecord::previous_arm_id);
}

// Returns the log of how much longer the first steps of slices after another arm's are than the other steps of a visit.
std::optional<double> first_of_slices(const BlockRecord& block, const VisitRecord& visit, std::int64_t slice_steps) {
  const auto arms = static_cast<std::int64_t>(block.visits.size()) / 2;
  const std::int64_t place = visit.position % arms;
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> other;
  for (std::size_t step = 0; step < visit.samples_ns.size(); ++step) {
    const std::int64_t slice = static_cast<std::int64_t>(step) / slice_steps;
    // Rounds go forth and back, so that the arm at the end of one is the first of the next.
    const bool follows_itself = slice > 0 && place == (slice % 2 == 0 ? 0 : arms - 1);
    const bool begins = static_cast<std::int64_t>(step) % slice_steps == 0;
    if (!begins) {
      other.push_back(visit.samples_ns[step]);
    } else if (!follows_itself) {
      first.push_back(visit.samples_ns[step]);
    }
  }
  if (first.empty() || other.empty()) {
    return std::nullopt;
  }
  return std::log(median_of(first) / median_of(other));
}

// Returns, for slices of one step, the log of how much longer a step after another arm's is than one after the arm's
// own. Only the arms at the ends of a round ever follow themselves, at every other step and so at every other number of
// keys held. In the block's second visit, at the other end of the round, they do so at the other half of the steps. The
// cost of the number of keys therefore cancels in the mean of both visits.
std::optional<double> after_another(const BlockRecord& block, std::int64_t arm_id) {
  const auto arms = static_cast<std::int64_t>(block.visits.size()) / 2;
  std::vector<double> logs;
  for (const VisitRecord& visit : block.visits) {
    const std::int64_t place = visit.position % arms;
    if (visit.arm_id != arm_id || (place != 0 && place != arms - 1)) {
      continue;
    }
    std::vector<std::int64_t> own;
    std::vector<std::int64_t> other;
    for (std::size_t step = 1; step < visit.samples_ns.size(); ++step) {
      ((step % 2 == 0) == (place == 0) ? own : other).push_back(visit.samples_ns[step]);
    }
    if (!own.empty() && !other.empty()) {
      logs.push_back(std::log(median_of(other) / median_of(own)));
    }
  }
  if (logs.size() < 2) {
    return std::nullopt;
  }
  return mean(logs);
}

// Returns what a place costs in one block; none where only the arm in the middle was timed twice.
std::optional<double> slot_of(const std::map<std::int64_t, Pair>& pairs) {
  std::vector<double> slopes;
  for (const auto& [arm, pair] : pairs) {
    if (pair.places > 1) {
      slopes.push_back(pair.difference / static_cast<double>(pair.places));
    }
  }
  if (slopes.empty()) {
    return std::nullopt;
  }
  return mean(slopes);
}

// Returns the mean log of `part` of each visit's samples; none where the arm was not timed.
template <class Part>
std::optional<double> mean_log(const BlockRecord& block, std::int64_t arm_id, Part&& part) {
  std::vector<double> logs;
  for (const VisitRecord& visit : block.visits) {
    if (visit.arm_id != arm_id || visit.samples_ns.empty()) {
      continue;
    }
    if (const double ns = part(Samples(visit.samples_ns)); ns > 0) {
      logs.push_back(std::log(ns));
    }
  }
  if (logs.empty()) {
    return std::nullopt;
  }
  return mean(logs);
}

// Returns the mean of all timed steps of an arm in a block; none where it was not timed.
std::optional<double> mean_of_steps(const BlockRecord& block, std::int64_t arm_id) {
  std::vector<double> steps;
  for (const VisitRecord& visit : block.visits) {
    if (visit.arm_id == arm_id) {
      steps.insert(steps.end(), visit.samples_ns.begin(), visit.samples_ns.end());
    }
  }
  if (steps.empty()) {
    return std::nullopt;
  }
  const double ns = mean(steps);
  return ns > 0 ? std::optional(ns) : std::nullopt;
}

}  // namespace

bool LaunchEffect::exceeds(double limit) const {
  return std::abs(mean) > limit && (interval.low > 0 || interval.high < 0);
}

std::optional<LaunchEffect> slot_effect(BlockSpan blocks_of_cell) {
  Launches launches;
  for (const BlockRecord* block : blocks_of_cell) {
    if (in_slices(*block)) {
      continue;
    }
    if (const auto slot = slot_of(pairs_of(*block))) {
      launches.add(block->launch, *slot);
    }
  }
  return launches.effect();
}

std::optional<LaunchEffect> carry_over(BlockSpan blocks_of_cell, std::int64_t arm_id, std::int64_t slice_steps) {
  Launches launches;
  for (const BlockRecord* block : blocks_of_cell) {
    if (in_slices(*block)) {
      if (slice_steps < 1) {
        continue;  // a store that no sweep made may not say how long slices are
      }
      if (slice_steps == 1) {
        if (const auto carried = after_another(*block, arm_id)) {
          launches.add(block->launch, *carried);
        }
        continue;
      }
      for (const VisitRecord& visit : block->visits) {
        const auto first = visit.arm_id == arm_id ? first_of_slices(*block, visit, slice_steps) : std::nullopt;
        if (first) {
          launches.add(block->launch, *first / static_cast<double>(slice_steps));
        }
      }
      continue;
    }
    const auto pairs = pairs_of(*block);
    const auto middle = pairs.find(arm_id);
    const auto slot = slot_of(pairs);
    if (middle != pairs.end() && middle->second.places == 1 && slot) {
      launches.add(block->launch, *slot - middle->second.difference);
    }
  }
  return launches.effect();
}

std::optional<LaunchEffect> slope_in_visits(BlockSpan blocks_of_cell, std::int64_t arm_id, std::int64_t baseline_id) {
  const auto first = [](Samples samples) { return median_of(samples.first((samples.size() + 1) / 2)); };
  const auto second = [](Samples samples) { return median_of(samples.subspan(samples.size() / 2)); };
  Launches launches;
  for (const BlockRecord* block : blocks_of_cell) {
    const auto arm_first = mean_log(*block, arm_id, first);
    const auto base_first = mean_log(*block, baseline_id, first);
    if (!arm_first || !base_first) {
      continue;
    }
    launches.add(block->launch, (*mean_log(*block, arm_id, second) - *mean_log(*block, baseline_id, second)) -
                                    (*arm_first - *base_first));
  }
  return launches.effect();
}

std::optional<LaunchEffect> median_contrast(BlockSpan blocks_of_cell, std::int64_t arm_id, std::int64_t baseline_id) {
  Launches launches;
  for (const BlockRecord* block : blocks_of_cell) {
    const auto arm = mean_log(*block, arm_id, median_of);
    const auto baseline = mean_log(*block, baseline_id, median_of);
    if (arm && baseline) {
      launches.add(block->launch, *arm - *baseline);
    }
  }
  return launches.effect();
}

std::optional<LaunchEffect> rare_costs(BlockSpan blocks_of_cell, std::int64_t arm_id, std::int64_t baseline_id) {
  Launches launches;
  for (const BlockRecord* block : blocks_of_cell) {
    const auto arm = mean_of_steps(*block, arm_id);
    const auto baseline = mean_of_steps(*block, baseline_id);
    const Comparison paired = compare_arms(std::span(&block, 1), arm_id, baseline_id);
    if (arm && baseline && !paired.blocks.empty()) {
      launches.add(block->launch, std::log(*arm / *baseline) - paired.blocks.front().contrast);
    }
  }
  return launches.effect();
}

RowChecks check_row(BlockSpan blocks_of_cell, std::int64_t slice_steps, std::int64_t arm_id, std::int64_t baseline_id,
                    double margin, std::optional<Verdict> verdict) {
  RowChecks checks{.carry_over = carry_over(blocks_of_cell, arm_id, slice_steps), .flags = {}};
  const double limit = std::log1p(margin);
  if (checks.carry_over && checks.carry_over->exceeds(kCarryOverShare * limit)) {
    checks.flags.emplace_back(kCarryOverFlag);
  }
  if (const auto effect = slope_in_visits(blocks_of_cell, arm_id, baseline_id);
      effect && effect->exceeds(kSlopeShare * limit)) {
    checks.flags.emplace_back(kSlopeFlag);
  }
  const auto median = median_contrast(blocks_of_cell, arm_id, baseline_id);
  const bool faster = median && median->interval.high < 0;
  const bool slower = median && median->interval.low > 0;
  if ((verdict == Verdict::faster && !faster) || (verdict == Verdict::slower && !slower)) {
    checks.flags.emplace_back(kMedianDiffersFlag);
  }
  if (const auto rare = rare_costs(blocks_of_cell, arm_id, baseline_id); rare && rare->exceeds(limit)) {
    checks.flags.emplace_back(kRareCostsFlag);
  }
  return checks;
}

}  // namespace decodelab
