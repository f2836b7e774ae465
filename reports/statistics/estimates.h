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

/// Throws std::invalid_argument for no values, like every function here that needs at least one.
double mean(std::span<const double> values);

/// The values without those that are NaN, which stand for launches that have none.
std::vector<double> without_gaps(std::span<const double> values);

/// Linear interpolation between order statistics (Hyndman and Fan 1996, type 7; NumPy's default). `sorted` is
/// ascending, `p` in [0, 1].
double quantile(std::span<const double> sorted, double p);
/// The same at one half, of values in any order.
double median(std::vector<double> values);

/// What the value at `rank` (from 0) of `count` sorted values keeps of its weight where `cut_share` of the weight is
/// cut at each end: a cut that is no whole number of values takes a fraction of the outermost one that it reaches
/// (Rosenberger and Gasko 1983).
double kept_weight(std::size_t rank, std::size_t count, double cut_share);

/// Mean over whole periods of 8 steps, trimmed within each residue class; the plain mean where there are fewer than 8
/// steps.
///
/// 10 % of the values of a class are cut at each end; a class has at most 8 values at 64 steps, so the cut is a
/// fraction of a value. A last, broken period does not count.
double visit_statistic(std::span<const std::int64_t> samples_ns);

/// The value at 30 bits, 9 significant digits: what decisions compare, so that one made again from the store by another
/// build or on another machine, whose sums may differ in the last bits, is the same.
inline double decision_digits(double value) {
  if (!std::isfinite(value)) {
    return value;
  }
  // Of the 52 stored bits of the mantissa, which has a bit that is not stored, 29 stay; halves go away from zero.
  constexpr int kDropped = 23;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value) + (std::uint64_t{1} << (kDropped - 1));
  return std::bit_cast<double>(bits & ~((std::uint64_t{1} << kDropped) - 1));
}

/// Two-sided p of Student's t test that the mean is 0; 1 for fewer than two values.
double student_t_p(std::span<const double> values);
/// One-sided p of Student's t test that the mean is at most 0; 1 for fewer than two values.
double student_t_p_above(std::span<const double> values);

/// Quantile of Student's t with n - 1 degrees of freedom.
double student_t_quantile(double p, std::size_t n);

/// Two-sided 95 % Student-t interval of the mean; none for fewer than two values, which have no spread.
std::optional<Interval> mean_interval(std::span<const double> values);
/// The same with `level` of the distribution beyond each end: 0.025 is the one above.
std::optional<Interval> mean_interval(std::span<const double> values, double level);

/// With n - 1 below the fraction. Throws std::invalid_argument for fewer than two values.
double standard_deviation(std::span<const double> values);

/// The smallest true mean that a two-sided test at .05 over as many values finds with 80 % power.
///
/// (t(.975) + t(.8)) * s / sqrt(n) with n - 1 degrees of freedom, the usual approximation of the noncentral t (2 %
/// below it for n = 4, 1 % for n = 5), where s is its upper 90 % confidence limit, since a spread from few launches is
/// more often too small than too large, and a shared machine's changes from one run to the next: on 600 windows of 8
/// real launches the effect by the 80 % limit, put into the other windows of its cell, was found in 75 %, by the 90 %
/// limit in 81 % (tools/validate_measurement). None for fewer than two values.
std::optional<double> detectable_mean(std::span<const double> values);

/// Of a test that stands alone.
inline constexpr double kPower = 0.8;

/// The same for a test with another critical t, as that of a family, against a margin that the mean must exceed, and
/// with another power.
std::optional<double> detectable_mean(std::span<const double> values, double critical_t, double margin,
                                      double power = kPower);

}  // namespace decodelab
