// Decides on data that are still being collected, at looks that are fixed in advance and have a level each, by the same
// rule for one-sided and two-sided tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/statistics/estimates.h"
#include "reports/statistics/sign_flip.h"

namespace decodelab {

/// When data that are still being collected are evaluated, and at which levels. The levels of the two rules below keep
/// the chance of any false alarm over all four looks at .05, which tests/reports/statistics/looks_test.cpp checks by
/// simulation.
struct LookRule {
  std::vector<std::size_t> looks;  ///< Values (gate blocks, launches) per contrast at each look, ascending.
  /// Level of each look and contrast, beyond each side that is tested; the intervals use it too.
  double level = 0;
  /// Level of max-T where there are several contrasts. It is lower than `level`, because the largest of many t is less
  /// alike from look to look than a single t is (with `level` in its place, simulated families of 2 to 20 cells gave
  /// false alarms in 5.2 to 5.7 %).
  double family_level = 0;
  Sides sides = Sides::upper;
  double power = kPower;  ///< Power that `LookContrast::mde` is computed for.

  /// Returns the level for the p values of single contrasts: `level`, or twice that where both sides are tested.
  double p_level() const { return sides == Sides::two ? 2 * level : level; }
  /// Returns the level for the p values of max-T.
  double p_family_level(std::size_t contrasts) const {
    const double of_family = contrasts > 1 ? std::min(level, family_level) : level;
    return sides == Sides::two ? 2 * of_family : of_family;
  }
};

/// These return the rules of a gate and of an adaptive sweep. The first look is the smallest at which sign flips can be
/// significant: 1 / 2^6 < .0157, 2 / 2^7 < 2 x .0079. The power of a gate's look is the square root of .8, since a
/// slow-down must be found twice.
inline LookRule gate_looks() { return {{6, 10, 16, 24}, 0.018, 0.0157, Sides::upper, std::sqrt(kPower)}; }
inline LookRule adaptive_looks() { return {{7, 11, 17, 25}, 0.0084, 0.0079, Sides::two}; }

/// Words beside every interval of data that were evaluated more than once.
inline constexpr const char* kIntervalWithLooks = "at least 90 % whatever the stopping";

enum class LookVerdict {
  slower,     ///< Significant in max-T and by Student's t, and the estimate reaches the margin.
  faster,     ///< The same below 0; for two-sided rules only.
  within,     ///< The interval lies within the margin: below it, or two-sided between it and its negative.
  undecided,  ///< None of these.
};

/// The result of one look for one contrast. The estimate is the mean logarithm of the arm's time over the baseline's;
/// the interval is that of this mean.
struct LookContrast {
  LookVerdict verdict = LookVerdict::undecided;
  std::size_t values = 0;  ///< Values that are not NaN at this look.
  double estimate = 0;
  /// Student's t(1 - level) on each side (kIntervalWithLooks). None for fewer than two values.
  std::optional<Interval> interval;
  double p_t = 1;             ///< Student's t for this contrast alone, for the sides that the rule tests.
  double p_sign_flip = 1;     ///< The same by sign flips.
  double p_family = 1;        ///< max-T.
  std::optional<double> mde;  ///< Smallest effect that this look finds with the rule's power, as a share.
  /// How many more values would probably decide the contrast if the spread stays the same. None where it is decided,
  /// where the estimate stands at the margin, or where more than 1000 would be needed.
  std::optional<std::size_t> more;
  /// Of Student's t and the sign flips of this contrast, one is significant and the other is not.
  bool tests_disagree = false;
};

/// Margins of one contrast, as logarithms.
struct LookMargin {
  double effect = 0;  ///< An estimate below it is not called a difference.
  double within = 0;  ///< Bound of a difference that does not matter.
};

/// Takes one look at every contrast. `contrasts[j][i]` is contrast j in gate block or launch i, NaN where there is
/// none.
///
/// `within` needs no correction for the number of contrasts: that all of them are within is claimed only where each is
/// (intersection-union test; Berger 1982, Technometrics 24:295). Throws std::invalid_argument as test_family() does,
/// and where the numbers of margins and contrasts differ.
std::vector<LookContrast> decide_look(const std::vector<std::vector<double>>& contrasts,
                                      const std::vector<LookMargin>& margins, const LookRule& rule);

/// Returns only the verdicts of decide_look(), a hundred times as fast where nothing differs: it flips signs only where
/// Student's t and the margin call some contrast different. Meant for simulations.
std::vector<LookVerdict> look_verdicts(const std::vector<std::vector<double>>& contrasts,
                                       const std::vector<LookMargin>& margins, const LookRule& rule);

/// What fresh data say about the contrasts that a look called slower.
enum class Evidence { awaited, borne_out, refuted };

struct SecondLook {
  Evidence evidence = Evidence::awaited;
  std::size_t values = 0;  ///< Values that it rests on; where it is awaited, values that the next look needs.
};

/// Tests `suspects`, the contrasts that a look called slower, only in data that this look has not seen, by the same
/// looks and levels. The first look has said how much slower they are; the second one asks whether they are slower at
/// all. A load beside the measurement that comes and goes must therefore deceive twice: where the noise is much larger
/// than the margin, 1 in 400 gates of equal builds fails instead of 1 in 20.
///
/// Returns `borne_out` where one of them is significantly slower than 0 and its interval does not exclude a slow-down
/// by its margin. Returns `refuted` where every interval excludes a slow-down by the margin, or where neither holds
/// after the last of `rule`'s looks that needs no more than `most` values.
SecondLook second_look(const std::vector<std::vector<double>>& suspects, const std::vector<LookMargin>& margins,
                       const LookRule& rule, std::size_t most);

/// Takes one look by the two-sided rule of `sweep --adaptive`: with margin 0, so that any significant effect is a
/// difference; an interval within kSameMargin is called the same.
std::vector<LookContrast> decide_adaptive_look(const std::vector<std::vector<double>>& contrasts);

}  // namespace decodelab
