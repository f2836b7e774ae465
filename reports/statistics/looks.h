// Decisions on data that are still coming in: fixed looks, a level for each, and the same rule for one side and for
// two.
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

/// When growing data are looked at. The levels of the two rules below keep the chance of any false alarm over all four
/// looks at .05, which tests/reports/statistics/looks_test.cpp checks by simulation.
struct LookRule {
  std::vector<std::size_t> looks;  ///< Values (gate blocks, launches) per contrast at each look, ascending.
  double level = 0;  ///< Of each look and contrast, beyond each side that is tested; of the intervals too.
  /// Of max-T where there are several contrasts: looks at the largest of many t are less alike than looks at one, so
  /// that there is more to spend (with `level` in its place, simulated families of 2 to 20 cells gave false alarms
  /// in 5.2 to 5.7 %).
  double family_level = 0;
  Sides sides = Sides::upper;
  double power = kPower;  ///< Of `LookContrast::mde`.

  /// Of the p values of single contrasts: the level, twice it where both sides are tested.
  double p_level() const { return sides == Sides::two ? 2 * level : level; }
  /// Of the p values of max-T.
  double p_family_level(std::size_t contrasts) const {
    const double of_family = contrasts > 1 ? std::min(level, family_level) : level;
    return sides == Sides::two ? 2 * of_family : of_family;
  }
};

/// The first look is the smallest at which sign flips can be significant: 1 / 2^6 < .0157, 2 / 2^7 < 2 x .0079.
/// The power of a gate's is the square root of .8, since what is slower must be found twice.
inline LookRule gate_looks() { return {{6, 10, 16, 24}, 0.018, 0.0157, Sides::upper, std::sqrt(kPower)}; }
inline LookRule adaptive_looks() { return {{7, 11, 17, 25}, 0.0084, 0.0079, Sides::two}; }

/// What stands beside every interval of data that were looked at more than once.
inline constexpr const char* kIntervalWithLooks = "at least 90 % whatever the stopping";

enum class LookVerdict {
  slower,     ///< Significant in max-T and by Student's t, and the estimate reaches the margin.
  faster,     ///< The same below 0; of two-sided rules only.
  within,     ///< The interval lies within the margin: below it, or two-sided between it and its negative.
  undecided,  ///< Else.
};

/// What one look says about one contrast. Estimate and interval are means of logarithms of time over time.
struct LookContrast {
  LookVerdict verdict = LookVerdict::undecided;
  std::size_t values = 0;  ///< Present at this look.
  double estimate = 0;
  std::optional<Interval> interval;  ///< t(1 - level) each side: kIntervalWithLooks. None for fewer than two values.
  double p_t = 1;                    ///< Student's t of this contrast alone, of the sides of the rule.
  double p_sign_flip = 1;            ///< The same by sign flips.
  double p_family = 1;               ///< max-T.
  std::optional<double> mde;         ///< Smallest effect that this look finds with 80 % power, as a share.
  /// Values that would probably decide it, beyond those present, were the spread to stay; none where it is decided, or
  /// where the estimate stands at the margin.
  std::optional<std::size_t> more;
  bool tests_disagree = false;  ///< One of Student's t and sign flips (max-T) is significant, the other is not.
};

/// Margins of one contrast, as logarithms.
struct LookMargin {
  double effect = 0;  ///< An estimate below it is not called a difference.
  double within = 0;  ///< Bound of what is called no difference that matters.
};

/// `contrasts[j][i]` is contrast j in gate block or launch i, NaN where there is none.
///
/// `within` needs no correction for the number of contrasts: that all of them are within is claimed only where each is
/// (intersection-union test; Berger 1982, Technometrics 24:295). Throws std::invalid_argument as test_family() does,
/// and where the numbers of margins and contrasts differ.
std::vector<LookContrast> decide_look(const std::vector<std::vector<double>>& contrasts,
                                      const std::vector<LookMargin>& margins, const LookRule& rule);

/// The verdicts of decide_look() alone, a hundred times as fast where nothing differs: signs are flipped only where
/// Student's t and the margin leave the question open. For simulations.
std::vector<LookVerdict> look_verdicts(const std::vector<std::vector<double>>& contrasts,
                                       const std::vector<LookMargin>& margins, const LookRule& rule);

/// What other data show of the contrasts that a look called slower.
enum class Evidence { awaited, borne_out, refuted };

struct SecondLook {
  Evidence evidence = Evidence::awaited;
  std::size_t values = 0;  ///< Those that it rests on; where it is awaited, those that the next look needs.
};

/// Looks at `suspects`, which a look called slower, in data that it has not seen, alone, by the same looks and levels.
/// How much slower is the first look's to say; here the question is whether it is there at all. A load beside the
/// measurement that came and went must so deceive twice: 1 in 400 gates of equal builds fails where the noise is much
/// larger than the margin, instead of 1 in 20.
///
/// Borne out: one of them is slower than nothing, and may be so by its margin. Refuted: none may be slower by its
/// margin, or `most` values (the last of `rule`'s looks that are not more) show nothing.
SecondLook second_look(const std::vector<std::vector<double>>& suspects, const std::vector<LookMargin>& margins,
                       const LookRule& rule, std::size_t most);

/// The two-sided rule of `compare --adaptive`: margin 0, and within kSameMargin is the same.
std::vector<LookContrast> decide_adaptive_look(const std::vector<std::vector<double>>& contrasts);

}  // namespace decodelab
