// How much longer an arm's steps take than the baseline's, from steps that ran side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace decodelab {

/// The timed steps of an arm's visit and of the baseline's in the same half of a block.
struct VisitPair {
  std::span<const std::int64_t> arm_ns;
  std::span<const std::int64_t> baseline_ns;
};

/// Share of the pairs of a class that is cut at each end (Wilcox 2012, ISBN 978-0-12-386983-8, chapter 3).
inline constexpr double kTrimmedPairs = 0.2;

/// A pair is disturbed whose sum, as that of its neighbours, is longer than usual by this share.
inline constexpr double kDisturbed = 1.05;

/// Log of the ratio of the mean step times, arm over baseline, over pairs of steps: step i of a visit with step i of
/// the other.
///
/// Where arms run in slices, the two ran within a slice of each other and at the same length, so that a slow spell of
/// the machine, which lasts for many steps, slows both, and what is left is a hiccup of one of them: its pair stands
/// out by its difference. Of each residue class of whole periods of 8 steps, over all visits, the pairs whose
/// differences are the outer 20 % at each end are cut, fractions of a pair included; both means are over the pairs that
/// stay, so that a cost that comes every 8th step counts in full, and swapping the arms changes the sign alone.
///
/// Beside another process that comes and goes too many pairs are hit for that. Those are disturbed where the median of
/// their own sum and of both neighbours' is more than 5 % above the usual one: the lower quartile of the sums of a
/// class, and what all sums grow by over a visit, as the cache does. What hit them from outside lasts for some steps,
/// and their sum does not say which of the arms it hit; a single long step between two usual ones stays, since an arm's
/// own cost may come every so many steps. Without the disturbed pairs, of which a quarter of each class stays at least,
/// the rest is fewer but may agree better: it is taken where the interquartile range of its differences, over the root
/// of their number, is the smaller one. Beside a thread that streams memory for 30 % of the time gate blocks spread
/// by 2.7 % then, and by 7.8 % without (60 of them, one block a launch); on a calm machine as before.
///
/// Steps that the other visit lacks are left out. Where a visit has fewer than 8 all pairs are one class, of which none
/// counts as disturbed. None without a pair.
///
/// The design trims each visit by itself, before the comparison; on a virtual machine with neighbours the spread of a
/// block's contrast was twice as large then, so that the same certainty took four times as long.
std::optional<double> log_ratio_of_pairs(std::span<const VisitPair> visits);

}  // namespace decodelab
