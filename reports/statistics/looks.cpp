// Applies one look to every contrast of a family.
#include "reports/statistics/looks.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "reports/statistics/verdict.h"

namespace decodelab {
namespace {

constexpr double kMostToAdvise = 1000;  // beyond it the advice is to measure something else

bool lies_within(const Interval& interval, double margin, Sides sides) {
  const bool below = decision_digits(interval.high) < decision_digits(margin);
  return below && (sides == Sides::upper || decision_digits(interval.low) > -decision_digits(margin));
}

// Returns how many more values are needed, at this estimate and spread, until a bound of the interval decides: the
// upper one lies below the margin or, where the estimate reaches the margin, the lower one lies above 0.
std::optional<std::size_t> more_values(const LookContrast& contrast, const LookMargin& margin, Sides sides,
                                       double spread, double critical) {
  const double estimate = sides == Sides::two ? std::abs(contrast.estimate) : contrast.estimate;
  const double to_difference = estimate >= margin.effect ? estimate : 0;
  const double target = std::max(to_difference, margin.within - estimate);
  if (target <= 0 || !std::isfinite(critical)) {
    return std::nullopt;
  }
  const double needed = std::ceil((critical * spread / target) * (critical * spread / target));
  const double more = std::max(1.0, needed - static_cast<double>(contrast.values));
  if (more > kMostToAdvise) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(more);
}

// Returns the smallest effect whose estimate would be both significant and not below the margin: the larger of the two.
std::optional<double> detectable(const std::vector<double>& values, double critical, double margin, double power) {
  if (!std::isfinite(critical)) {
    return std::nullopt;
  }
  const auto significant = detectable_mean(values, critical, 0, power);
  const auto beyond_margin = detectable_mean(values, 0, margin, power);
  if (!significant || !beyond_margin) {
    return std::nullopt;
  }
  return std::expm1(std::max(*significant, *beyond_margin));
}

// `significant` is the result of max-T; everything else depends on this contrast alone.
LookVerdict verdict_of(const std::vector<double>& values, const LookMargin& margin, const LookRule& rule,
                       bool significant) {
  if (values.size() < 2) {
    return LookVerdict::undecided;
  }
  const double p_t = rule.sides == Sides::two ? student_t_p(values) : student_t_p_above(values);
  const double estimate = decision_digits(mean(values));
  if (significant && p_t <= rule.p_level() && std::abs(estimate) >= decision_digits(margin.effect)) {
    return estimate < 0 ? LookVerdict::faster : LookVerdict::slower;
  }
  const bool within = lies_within(*mean_interval(values, rule.level), margin.within, rule.sides);
  return within ? LookVerdict::within : LookVerdict::undecided;
}

void describe(LookContrast& contrast, const std::vector<double>& values, const LookMargin& margin, const LookRule& rule,
              double critical_t) {
  contrast.values = values.size();
  if (values.empty()) {
    return;
  }
  contrast.estimate = mean(values);
  if (values.size() < 2) {
    return;
  }
  contrast.interval = mean_interval(values, rule.level);
  contrast.p_t = rule.sides == Sides::two ? student_t_p(values) : student_t_p_above(values);
  contrast.tests_disagree = (contrast.p_t <= rule.p_level()) != (contrast.p_sign_flip <= rule.p_level());
  const double quantile = student_t_quantile(1 - rule.level, values.size());
  contrast.mde = detectable(values, std::max(critical_t, quantile), margin.effect, rule.power);
  if (contrast.verdict != LookVerdict::undecided) {
    return;
  }
  const double critical = std::isfinite(critical_t) ? std::max(critical_t, quantile) : quantile;
  contrast.more = more_values(contrast, margin, rule.sides, standard_deviation(values), critical);
}

void require_margins(std::size_t contrasts, std::size_t margins) {
  if (contrasts == margins) {
    return;
  }
  throw std::invalid_argument(
      fmt::format("Every contrast has a margin: got {} contrasts and {} margins.", contrasts, margins));
}

}  // namespace

std::vector<LookVerdict> look_verdicts(const std::vector<std::vector<double>>& contrasts,
                                       const std::vector<LookMargin>& margins, const LookRule& rule) {
  require_margins(contrasts.size(), margins.size());
  std::vector<LookVerdict> verdicts;
  for (std::size_t j = 0; j < contrasts.size(); ++j) {
    verdicts.push_back(verdict_of(without_gaps(contrasts[j]), margins[j], rule, true));
  }
  const auto differs = [](LookVerdict verdict) {
    return verdict == LookVerdict::slower || verdict == LookVerdict::faster;
  };
  if (std::ranges::none_of(verdicts, differs)) {
    return verdicts;
  }
  const double level = rule.p_family_level(contrasts.size());
  const FamilyTest family = test_family(contrasts, rule.sides, level);
  for (std::size_t j = 0; j < contrasts.size(); ++j) {
    if (differs(verdicts[j])) {
      verdicts[j] = verdict_of(without_gaps(contrasts[j]), margins[j], rule, family.p_adjusted[j] <= level);
    }
  }
  return verdicts;
}

std::vector<LookContrast> decide_look(const std::vector<std::vector<double>>& contrasts,
                                      const std::vector<LookMargin>& margins, const LookRule& rule) {
  require_margins(contrasts.size(), margins.size());
  const double level = rule.p_family_level(contrasts.size());
  const FamilyTest family = test_family(contrasts, rule.sides, level);
  std::vector<LookContrast> decided(contrasts.size());
  for (std::size_t j = 0; j < contrasts.size(); ++j) {
    decided[j].p_sign_flip = family.p[j];
    decided[j].p_family = family.p_adjusted[j];
    const std::vector<double> values = without_gaps(contrasts[j]);
    decided[j].verdict = verdict_of(values, margins[j], rule, family.p_adjusted[j] <= level);
    describe(decided[j], values, margins[j], rule, family.critical_t);
  }
  return decided;
}

SecondLook second_look(const std::vector<std::vector<double>>& suspects, const std::vector<LookMargin>& margins,
                       const LookRule& rule, std::size_t most) {
  require_margins(suspects.size(), margins.size());
  SecondLook answer{.evidence = Evidence::refuted};
  for (const std::size_t look : rule.looks) {
    if (look > most) {
      break;
    }
    answer.values = look;
    if (suspects.empty() || suspects.front().size() < look) {
      return {Evidence::awaited, look};
    }
    std::vector<std::vector<double>> seen;
    for (const std::vector<double>& values : suspects) {
      seen.emplace_back(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(look));
    }
    const auto verdicts = look_verdicts(seen, std::vector<LookMargin>(seen.size()), rule);
    bool all_within = true;
    for (std::size_t j = 0; j < seen.size(); ++j) {
      const auto interval = mean_interval(without_gaps(seen[j]), rule.level);
      if (interval && lies_within(*interval, margins[j].within, rule.sides)) {
        continue;
      }
      if (verdicts[j] == LookVerdict::slower) {
        return {Evidence::borne_out, look};
      }
      all_within = false;
    }
    if (all_within) {
      break;
    }
  }
  return answer;
}

std::vector<LookContrast> decide_adaptive_look(const std::vector<std::vector<double>>& contrasts) {
  const LookMargin margin{.effect = 0, .within = std::log1p(kSameMargin)};
  return decide_look(contrasts, std::vector<LookMargin>(contrasts.size(), margin), adaptive_looks());
}

}  // namespace decodelab
