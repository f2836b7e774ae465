// Sorts pairs of steps by their differences and takes the means of the middle ones.
#include "reports/statistics/paired_steps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

struct StepPair {
  std::int64_t arm_ns = 0;
  std::int64_t baseline_ns = 0;

  std::int64_t difference() const { return arm_ns - baseline_ns; }
};

struct Means {
  double arm_ns = 0;
  double baseline_ns = 0;
};

std::size_t common_steps(const VisitPair& visit) { return std::min(visit.arm_ns.size(), visit.baseline_ns.size()); }

Means means_of_the_middle(std::vector<StepPair>& pairs) {
  std::ranges::stable_sort(pairs, {}, &StepPair::difference);
  Means sums;
  double weights = 0;
  for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
    const double weight = kept_weight(rank, pairs.size(), kTrimmedPairs);
    sums.arm_ns += weight * static_cast<double>(pairs[rank].arm_ns);
    sums.baseline_ns += weight * static_cast<double>(pairs[rank].baseline_ns);
    weights += weight;
  }
  return {.arm_ns = sums.arm_ns / weights, .baseline_ns = sums.baseline_ns / weights};
}

}  // namespace

std::optional<double> log_ratio_of_pairs(std::span<const VisitPair> visits) {
  constexpr auto kPeriod = static_cast<std::size_t>(kPeriodSteps);
  const bool whole_periods =
      std::ranges::all_of(visits, [](const VisitPair& visit) { return common_steps(visit) >= kPeriod; });
  const std::size_t classes = whole_periods ? kPeriod : 1;
  std::vector<std::vector<StepPair>> pairs(classes);
  for (const VisitPair& visit : visits) {
    const std::size_t steps = common_steps(visit) / classes * classes;
    for (std::size_t i = 0; i < steps; ++i)
      pairs[i % classes].push_back({.arm_ns = visit.arm_ns[i], .baseline_ns = visit.baseline_ns[i]});
  }
  Means sums;
  for (std::vector<StepPair>& residue_class : pairs) {
    if (residue_class.empty()) return std::nullopt;
    const Means means = means_of_the_middle(residue_class);
    sums.arm_ns += means.arm_ns;
    sums.baseline_ns += means.baseline_ns;
  }
  if (!(sums.arm_ns > 0 && sums.baseline_ns > 0)) return std::nullopt;
  return std::log(sums.arm_ns / sums.baseline_ns);
}

}  // namespace decodelab
