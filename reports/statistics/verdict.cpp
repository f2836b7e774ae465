// Applies the rules to each contrast of a family.
#include "reports/statistics/verdict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

constexpr std::int64_t kMostLaunchesToAdvise = 1000;  // beyond it the advice is to measure something else

// Returns how many more launches are needed until an interval of the same spread would exclude 0 or lie within the
// margin.
std::optional<std::int64_t> launches_to_decide(const std::vector<double>& values, const Interval& interval) {
  const double estimate = std::abs(mean(values));
  const double half = (interval.high - interval.low) / 2;
  const double target = std::max(estimate, std::log1p(kSameMargin) - estimate);
  if (target <= 0) {
    return std::nullopt;
  }
  const double count = static_cast<double>(values.size());
  const double needed = std::ceil(count * (half / target) * (half / target));
  const double more = std::max(1.0, needed - count);
  if (more > static_cast<double>(kMostLaunchesToAdvise)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(more);
}

// What is said of one of `size` contrasts that has fewer launches than a verdict needs.
Decision too_few(const std::vector<double>& values, double p_sign_flip, std::size_t size) {
  return {.reason = fmt::format("{} launches, and a verdict on {} contrast{} needs {}", values.size(), size,
                                size == 1 ? "" : "s", launches_for_verdict(size)),
          .p_t = student_t_p(values),
          .p_sign_flip = p_sign_flip};
}

Decision decide(const std::vector<double>& values, const FamilyTest& family, std::size_t index) {
  Decision decision{.p_sign_flip = family.p[index], .p_family = family.p_adjusted[index]};
  decision.p_t = student_t_p(values);
  const Interval interval = *mean_interval(values);
  const double critical = std::max(family.critical_t, student_t_quantile(1 - kFamilyLevel / 2, values.size()));
  if (const auto detectable = detectable_mean(values, critical, 0); detectable && std::isfinite(*detectable)) {
    decision.mde = std::expm1(*detectable);
  }
  const double margin = std::log1p(kSameMargin);
  const bool agree = (decision.p_t <= kFamilyLevel) == (decision.p_sign_flip <= kFamilyLevel);
  if (decision.p_family <= kFamilyLevel && decision.p_t <= kFamilyLevel) {
    decision.verdict = mean(values) < 0 ? Verdict::faster : Verdict::slower;
    return decision;
  }
  if (agree && decision_digits(interval.low) >= -margin && decision_digits(interval.high) <= margin) {
    decision.verdict = Verdict::same;
    return decision;
  }
  decision.verdict = Verdict::inconclusive;
  decision.more_launches = launches_to_decide(values, interval);
  decision.reason = !agree ? kTestsDisagree : kNeitherWay;
  return decision;
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster: return "FASTER";
    case Verdict::slower: return "SLOWER";
    case Verdict::same: return "SAME";
    case Verdict::inconclusive: return "INCONCLUSIVE";
  }
  return "";
}

std::vector<Decision> decide_family(const std::vector<std::vector<double>>& contrasts) {
  std::vector<Decision> decisions;
  if (contrasts.empty()) {
    return decisions;
  }
  const std::size_t needed = launches_for_verdict(contrasts.size());
  std::vector<std::vector<double>> values;
  // A contrast of too few launches gets no verdict, so that it cannot be a false one: it does not raise the bar for the
  // others, whose patterns it would reach by its missing signs alone.
  std::vector<std::vector<double>> tested;
  for (const std::vector<double>& contrast : contrasts) {
    values.push_back(without_gaps(contrast));
    if (values.back().size() >= needed) {
      tested.push_back(contrast);
    }
  }
  const FamilyTest all = test_family(contrasts);
  const FamilyTest family = tested.size() == contrasts.size() ? all : test_family(tested);
  std::size_t place = 0;  // among those tested
  for (std::size_t j = 0; j < contrasts.size(); ++j) {
    decisions.push_back(values[j].size() < needed ? too_few(values[j], all.p[j], contrasts.size())
                                                  : decide(values[j], family, place++));
  }
  return decisions;
}

}  // namespace decodelab
