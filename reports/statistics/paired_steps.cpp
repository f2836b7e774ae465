// Leaves out pairs of steps that were disturbed together, sorts the others by their differences and takes the means of
// the middle ones.
#include "reports/statistics/paired_steps.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

constexpr auto kPeriod = static_cast<std::size_t>(kPeriodSteps);
constexpr double kQuartile = 0.25;

struct StepPair {
  std::int64_t arm_ns = 0;
  std::int64_t baseline_ns = 0;
  double relative = 1;     ///< Its sum, as a share of the usual one at its place of a period.
  double disturbance = 1;  ///< The median of `relative` of this pair and its neighbours.

  std::int64_t difference() const { return arm_ns - baseline_ns; }
  double sum() const { return static_cast<double>(arm_ns) + static_cast<double>(baseline_ns); }
};
using StepPairs = std::vector<StepPair>;

double quartile(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile(values, kQuartile);
}

struct Means {
  double arm_ns = 0;
  double baseline_ns = 0;
};

std::size_t common_steps(const VisitPair& visit) { return std::min(visit.arm_ns.size(), visit.baseline_ns.size()); }

Means means_of_the_middle(StepPairs pairs) {
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

/// Calls `use` for each place of a period with the pairs there, of all visits.
template <typename Use>
void for_each_place(std::vector<StepPairs>& visits, std::size_t period, Use&& use) {
  for (std::size_t place = 0; place < period; ++place) {
    std::vector<StepPair*> pairs;
    for (StepPairs& visit : visits) {
      for (std::size_t i = place; i < visit.size(); i += period) {
        pairs.push_back(&visit[i]);
      }
    }
    use(pairs);
  }
}

template <typename Value>
std::vector<double> values_of(const std::vector<StepPair*>& pairs, Value&& value) {
  std::vector<double> values;
  for (const StepPair* pair : pairs) {
    values.push_back(std::invoke(value, *pair));
  }
  return values;
}

/// Returns the factor by which the sums grow from the middle of a visit's first half to the middle of its second half:
/// a growing cache makes steps longer.
double growth_of(const std::vector<StepPairs>& visits) {
  std::vector<double> first;
  std::vector<double> second;
  for (const StepPairs& visit : visits) {
    for (std::size_t i = 0; i < visit.size(); ++i) {
      (2 * i < visit.size() ? first : second).push_back(visit[i].relative);
    }
  }
  const double growth = quartile(second) / quartile(first);
  return growth > 0 ? growth : 1;
}

void find_disturbances(std::vector<StepPairs>& visits) {
  for_each_place(visits, kPeriod, [](const std::vector<StepPair*>& pairs) {
    const double usual = quartile(values_of(pairs, &StepPair::sum));
    for (StepPair* pair : pairs) {
      pair->relative = usual > 0 ? pair->sum() / usual : 1;
    }
  });
  const double growth = growth_of(visits);
  for (StepPairs& visit : visits) {
    const auto steps = static_cast<double>(visit.size());
    for (std::size_t i = 0; i < visit.size(); ++i) {
      visit[i].relative /= std::pow(growth, (2 * static_cast<double>(i) + 1) / steps - 0.5);
    }
    for (std::size_t i = 0; i < visit.size(); ++i) {
      std::vector<double> near;
      for (std::size_t j = i - std::min<std::size_t>(i, 1); j < std::min(i + 2, visit.size()); ++j) {
        near.push_back(visit[j].relative);
      }
      visit[i].disturbance = median(std::move(near));
    }
  }
}

struct Estimate {
  Means sums;
  /// Proportional to the standard error: the interquartile range of the differences over the root of their number.
  double noise = 0;
};

/// Estimates from the pairs whose disturbance is at most `most`; at each place of the period at least the least
/// disturbed quarter is kept.
Estimate estimate(std::vector<StepPairs>& visits, std::size_t period, double most) {
  Estimate result;
  std::vector<double> differences;
  for_each_place(visits, period, [&](const std::vector<StepPair*>& of_place) {
    const double limit = std::max(most, quartile(values_of(of_place, &StepPair::disturbance)));
    StepPairs calm;
    std::vector<double> here;
    for (const StepPair* pair : of_place) {
      if (pair->disturbance > limit) {
        continue;
      }
      calm.push_back(*pair);
      here.push_back(static_cast<double>(pair->difference()));
    }
    const double middle = median(here);
    for (const double difference : here) {
      differences.push_back(difference - middle);
    }
    const Means means = means_of_the_middle(std::move(calm));
    result.sums.arm_ns += means.arm_ns;
    result.sums.baseline_ns += means.baseline_ns;
  });
  const auto count = static_cast<double>(differences.size());
  std::ranges::sort(differences);
  result.noise = (quantile(differences, 1 - kQuartile) - quantile(differences, kQuartile)) / std::sqrt(count);
  return result;
}

}  // namespace

std::optional<double> log_ratio_of_pairs(std::span<const VisitPair> visits) {
  const bool whole_periods =
      std::ranges::all_of(visits, [](const VisitPair& visit) { return common_steps(visit) >= kPeriod; });
  const std::size_t period = whole_periods ? kPeriod : 1;
  std::vector<StepPairs> pairs;
  for (const VisitPair& visit : visits) {
    StepPairs& of_visit = pairs.emplace_back();
    for (std::size_t i = 0; i < common_steps(visit) / period * period; ++i) {
      of_visit.push_back({.arm_ns = visit.arm_ns[i], .baseline_ns = visit.baseline_ns[i]});
    }
  }
  if (std::ranges::all_of(pairs, &StepPairs::empty)) {
    return std::nullopt;
  }
  if (whole_periods) {
    find_disturbances(pairs);
  }
  Estimate best = estimate(pairs, period, std::numeric_limits<double>::infinity());
  if (whole_periods) {
    find_disturbances(pairs);
    const Estimate of_calm = estimate(pairs, period, kDisturbed);
    if (of_calm.noise < best.noise) {
      best = of_calm;
    }
  }
  const Means& sums = best.sums;
  if (!(sums.arm_ns > 0 && sums.baseline_ns > 0)) {
    return std::nullopt;
  }
  return std::log(sums.arm_ns / sums.baseline_ns);
}

}  // namespace decodelab
