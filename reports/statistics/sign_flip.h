// Tests by flipped signs. They assume only that, without an effect, noise puts a value as often above 0 as below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace decodelab {

/// Up to this many launches every sign pattern is enumerated; above, a fixed set of kSignDraws drawn patterns stands
/// for all.
inline constexpr std::size_t kEnumeratedLaunches = 12;
inline constexpr std::size_t kSignDraws = 65'536;
/// Level of all tests of one family together, two-sided.
inline constexpr double kFamilyLevel = 0.05;

/// Value of a launch that has none.
inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// Returns sign patterns of `launches` values, with a bit per value (1: flipped), the unflipped pattern first.
///
/// All 2^n for n <= 12; else kSignDraws patterns drawn by SplitMix64 from a constant, so that a decision made again
/// from the store is the same one, and drawn only from those that leave the first sign alone, since the tests are
/// two-sided. Throws std::invalid_argument above 64 launches.
std::vector<std::uint64_t> sign_patterns(std::size_t launches);

/// Returns |mean| / (s / sqrt(n)) of the values with the signs of `pattern` flipped, rounded to 9 significant digits.
/// NaNs, which stand for launches without the value, are left out. Infinite for equal values other than 0; 0 for zeros
/// and for fewer than two values.
double flipped_t(std::span<const double> values, std::uint64_t pattern);

/// What a test looks for: a mean that is not 0, or one above 0.
enum class Sides { two, upper };

/// The result of the test of one family of contrasts.
struct FamilyTest {
  std::vector<double> p;           ///< p of each contrast, by sign flips alone.
  std::vector<double> p_adjusted;  ///< p of each contrast within the family: max-T.
  double critical_t = 0;           ///< The 1 - level quantile of the largest |t| (upper: t) of the family under flips.
};

/// Tests a family by max-T with shared sign flips (Westfall and Young 1993, algorithm 2.8, single step; for signs
/// Winkler et al. 2014, doi:10.1016/j.neuroimage.2014.01.060).
///
/// `contrasts[j][i]` is contrast j in launch i, NaN where launch i has none; all have the same number of launches. One
/// pattern flips a launch in every contrast, which keeps the correlation between cells of a launch. An upper test
/// counts each drawn pattern and its complement, since the draws leave the first sign alone. Throws
/// std::invalid_argument where the numbers of launches differ.
FamilyTest test_family(const std::vector<std::vector<double>>& contrasts, Sides sides = Sides::two,
                       double level = kFamilyLevel);

}  // namespace decodelab
