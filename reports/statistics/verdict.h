// Decides whether a difference may be called one (different, the same, or inconclusive), by rules that were fixed
// before the data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/statistics/sign_flip.h"

namespace decodelab {

/// FASTER or SLOWER: the family-wise test holds. SAME: the whole interval lies within kSameMargin. Else INCONCLUSIVE.
enum class Verdict { faster, slower, same, inconclusive };
const char* to_string(Verdict verdict);

inline constexpr double kSameMargin = 0.01;
/// Launches that a verdict needs: in a family of up to kSmallFamily contrasts, and in a larger one. With fewer than six
/// no sign flip can be significant (2 / 2^5 > .05).
inline constexpr std::size_t kLaunchesForAVerdict = 6;
inline constexpr std::size_t kLaunchesForAFamily = 10;
inline constexpr std::size_t kSmallFamily = 4;

/// Returns the number of launches that a verdict needs in a family of so many contrasts.
constexpr std::size_t launches_for_verdict(std::size_t contrasts) {
  return contrasts > kSmallFamily ? kLaunchesForAFamily : kLaunchesForAVerdict;
}

/// Why a contrast is INCONCLUSIVE.
inline constexpr const char* kTestsDisagree = "Student's t and the sign flips disagree";
inline constexpr const char* kNeitherWay = "neither different nor within 1 % for sure";

/// What the rules say about one contrast.
struct Decision {
  std::optional<Verdict> verdict;             ///< None below the number of launches that the rules ask for.
  std::string reason;                         ///< Why there is none, or why it is inconclusive; else empty.
  double p_t = 1;                             ///< Student's t, two-sided, of this contrast alone.
  double p_sign_flip = 1;                     ///< The same by sign flips.
  double p_family = 1;                        ///< Adjusted for all that have launches enough (max-T); 1 for others.
  std::optional<double> mde;                  ///< Smallest effect that this rule finds with 80 % power, as a share.
  std::optional<std::int64_t> more_launches;  ///< About so many more would decide an inconclusive contrast.
};

/// Decides every contrast of one family: `contrasts[j][i]` is contrast j, a logarithm of time over time, in launch i;
/// NaN where that launch has none.
///
/// FASTER and SLOWER need p_family <= .05 and, so that no single test carries the verdict, p_t <= .05 too; where
/// Student's t and the sign flips of a contrast disagree at .05, it is INCONCLUSIVE whatever its interval. Those of too
/// few launches have no verdict and are not tested with the others, but count in the number that
/// launches_for_verdict() is asked about. Throws std::invalid_argument as test_family() does.
std::vector<Decision> decide_family(const std::vector<std::vector<double>>& contrasts);

}  // namespace decodelab
