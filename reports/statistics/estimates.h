// Estimates of a location and its interval: order statistics, the trimmed mean of a visit, Student's t over launches.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace decodelab {

/// Costs that come every few steps (padding, reallocation) come at multiples of 8 tokens; a mean over whole periods
/// counts each of them as often as it comes.
inline constexpr std::int64_t kPeriodSteps = 8;

/// The upper quantile of a two-sided 95 % interval.
inline constexpr double kTwoSided95 = 0.975;

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

/// Returns the arithmetic mean. Throws std::invalid_argument for no values, like every function here that needs at
/// least one.
double mean(std::span<const double> values);

/// Returns the values without the NaNs, which stand for launches without a value.
std::vector<double> without_gaps(std::span<const double> values);

/// Interpolates linearly between order statistics (Hyndman and Fan 1996, type 7; NumPy's default). `sorted` is
/// ascending, `p` in [0, 1].
double quantile(std::span<const double> sorted, double p);
/// Returns the 0.5 quantile of values in any order.
double median(std::vector<double> values);

/// Returns the share of its weight that the value at `rank` (from 0) of `count` sorted values keeps where `cut_share`
/// of all weight is cut at each end. A cut that is not a whole number of values takes a fraction of the last value that
/// it reaches (Rosenberger and Gasko 1983).
double kept_weight(std::size_t rank, std::size_t count, double cut_share);

/// Returns the mean over whole periods of 8 steps, trimmed within each residue class; the plain mean where there are
/// fewer than 8 steps.
///
/// 10 % of the values of a class are cut at each end; a class has at most 8 values at 64 steps, so the cut is a
/// fraction of a value. An incomplete last period is left out.
double visit_statistic(std::span<const std::int64_t> samples_ns);

/// Rounds a value to 30 bits, about 9 significant digits. Decisions compare rounded values, so that a decision made
/// again from the store by another build or on another machine, whose sums may differ in the last bits, is the same.
inline double decision_digits(double value) {
  if (!std::isfinite(value)) {
    return value;
  }
  // Keeps 29 of the 52 stored bits of the mantissa, which has one more bit that is not stored; rounds halves away from
  // zero.
  constexpr int kDropped = 23;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value) + (std::uint64_t{1} << (kDropped - 1));
  return std::bit_cast<double>(bits & ~((std::uint64_t{1} << kDropped) - 1));
}

/// Returns the two-sided p of Student's t test that the mean is 0; 1 for fewer than two values.
double student_t_p(std::span<const double> values);
/// Returns the one-sided p of Student's t test that the mean is at most 0; 1 for fewer than two values.
double student_t_p_above(std::span<const double> values);

/// Returns the quantile of Student's t with n - 1 degrees of freedom.
double student_t_quantile(double p, std::size_t n);

/// Returns the two-sided 95 % Student-t interval of the mean; none for fewer than two values, which have no spread.
std::optional<Interval> mean_interval(std::span<const double> values);
/// Returns the Student-t interval of the mean with the share `level` of the distribution beyond each end; 0.025 gives
/// the 95 % interval.
std::optional<Interval> mean_interval(std::span<const double> values, double level);

/// Returns the standard deviation with divisor n - 1. Throws std::invalid_argument for fewer than two values.
double standard_deviation(std::span<const double> values);

/// Returns the smallest true mean that a two-sided test at .05 over as many values finds with 80 % power.
///
/// Computes (t(.975) + t(.8)) * s / sqrt(n) with n - 1 degrees of freedom, the usual approximation of the noncentral t
/// (2 % below it for n = 4, 1 % for n = 5). Here s is the upper 90 % confidence limit of the standard deviation: a
/// spread from few launches is more often too small than too large, and the spread of a shared machine changes from one
/// run to the next. On 600 windows of 8 real launches, the effect computed with this limit and put into the other
/// windows of its cell was found in 81 % of them; computed with the 80 % limit, it was found in 75 %
/// (tools/validate_measurement). Returns none for fewer than two values.
std::optional<double> detectable_mean(std::span<const double> values);

/// Power of a test that stands alone.
inline constexpr double kPower = 0.8;

/// Returns the same for a test with another critical t, such as that of a family, with a margin that the mean must
/// exceed, and with another power.
std::optional<double> detectable_mean(std::span<const double> values, double critical_t, double margin,
                                      double power = kPower);

}  // namespace decodelab
