// Order statistics, trimmed means and Student-t intervals.
#include "reports/statistics/estimates.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr double kTrimmedShare = 0.1;      // measurement.md, "Visits, blocks, launches"
constexpr double kBeyondEachEnd = 0.025;   // of a 95 % interval
constexpr double kSpreadConfidence = 0.9;  // of the upper limit of s

void require_values(std::size_t count) {
  if (count == 0) {
    throw std::invalid_argument("An estimate needs at least one value, got none.");
  }
}

// Cuts kTrimmedShare of the weight at each end of the sorted values.
double trimmed_mean(std::span<double> values) {
  if (values.size() == 1) {
    return values.front();
  }
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += kept_weight(i, values.size(), kTrimmedShare) * values[i];
  }
  return sum / (static_cast<double>(values.size()) * (1 - 2 * kTrimmedShare));
}

}  // namespace

double mean(std::span<const double> values) {
  require_values(values.size());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> without_gaps(std::span<const double> values) {
  std::vector<double> result;
  std::ranges::copy_if(values, std::back_inserter(result), [](double value) { return !std::isnan(value); });
  return result;
}

double kept_weight(std::size_t rank, std::size_t count, double cut_share) {
  const auto place = static_cast<double>(rank);
  const auto all = static_cast<double>(count);
  const double cut = cut_share * all;
  return std::min({1.0, std::max(0.0, place + 1 - cut), std::max(0.0, all - place - cut)});
}

double quantile(std::span<const double> sorted, double p) {
  require_values(sorted.size());
  if (!(p >= 0 && p <= 1)) {
    throw std::invalid_argument(fmt::format("A quantile is taken at a share from 0 to 1, got {}.", p));
  }
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

double visit_statistic(std::span<const std::int64_t> samples_ns) {
  require_values(samples_ns.size());
  constexpr auto kPeriod = static_cast<std::size_t>(kPeriodSteps);
  if (samples_ns.size() < kPeriod) {
    return mean(std::vector<double>(samples_ns.begin(), samples_ns.end()));
  }
  const std::size_t periods = samples_ns.size() / kPeriod;
  std::vector<double> residue_class(periods);
  double sum = 0;
  for (std::size_t residue = 0; residue < kPeriod; ++residue) {
    for (std::size_t period = 0; period < periods; ++period) {
      residue_class[period] = static_cast<double>(samples_ns[period * kPeriod + residue]);
    }
    sum += trimmed_mean(residue_class);
  }
  return sum / static_cast<double>(kPeriod);
}

double student_t_quantile(double p, std::size_t n) {
  if (n < 2) {
    throw std::invalid_argument(fmt::format("Student's t needs at least 2 values, got {}.", n));
  }
  return boost::math::quantile(boost::math::students_t(static_cast<double>(n - 1)), p);
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) {
    throw std::invalid_argument(fmt::format("A spread needs 2 values, got {}.", values.size()));
  }
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) {
    squares += (value - center) * (value - center);
  }
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<Interval> mean_interval(std::span<const double> values) { return mean_interval(values, kBeyondEachEnd); }

std::optional<Interval> mean_interval(std::span<const double> values, double level) {
  if (values.size() < 2) {
    return std::nullopt;
  }
  const double center = mean(values);
  const double half = student_t_quantile(1 - level, values.size()) * standard_deviation(values) /
                      std::sqrt(static_cast<double>(values.size()));
  return Interval{center - half, center + half};
}

double student_t_p(std::span<const double> values) {
  if (values.size() < 2) {
    return 1;
  }
  std::vector<double> upward(values.begin(), values.end());
  if (mean(values) < 0) {
    for (double& value : upward) {
      value = -value;
    }
  }
  return std::min(1.0, 2 * student_t_p_above(upward));
}

double student_t_p_above(std::span<const double> values) {
  if (values.size() < 2) {
    return 1;
  }
  const double spread = standard_deviation(values);
  const double center = mean(values);
  if (spread == 0) {
    return center > 0 ? 0 : 1;
  }
  const boost::math::students_t distribution(static_cast<double>(values.size() - 1));
  const double t = center / (spread / std::sqrt(static_cast<double>(values.size())));
  return decision_digits(boost::math::cdf(boost::math::complement(distribution, t)));
}

std::optional<double> detectable_mean(std::span<const double> values) {
  if (values.size() < 2) {
    return std::nullopt;
  }
  return detectable_mean(values, student_t_quantile(kTwoSided95, values.size()), 0);
}

std::optional<double> detectable_mean(std::span<const double> values, double critical_t, double margin, double power) {
  const std::size_t n = values.size();
  if (n < 2) {
    return std::nullopt;
  }
  const double freedom = static_cast<double>(n - 1);
  const double lower_chi_squared = boost::math::quantile(boost::math::chi_squared(freedom), 1 - kSpreadConfidence);
  const double spread = standard_deviation(values) * std::sqrt(freedom / lower_chi_squared);
  return margin + (critical_t + student_t_quantile(power, n)) * spread / std::sqrt(static_cast<double>(n));
}

}  // namespace decodelab
