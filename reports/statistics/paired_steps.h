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

/// A pair is disturbed where its sum, by the median with those of its neighbours, is more than this many times the
/// usual sum.
inline constexpr double kDisturbed = 1.05;

/// Returns the log of the ratio of the mean step times, arm over baseline, over pairs of steps: step i of a visit with
/// step i of the other.
///
/// Where arms run in slices, the two steps of a pair ran within a slice of each other and at the same length. A slow
/// spell of the machine, which lasts for many steps, slows both; a hiccup slows one of them, and its pair stands out by
/// its difference. The pairs of all visits form residue classes of whole periods of 8 steps. In each class the pairs
/// with the outer 20 % of the differences are cut at each end, fractions of a pair included, and both means are over
/// the pairs that stay. So a cost that comes every 8th step counts in full, and swapping the arms changes only the
/// sign.
///
/// Another process that comes and goes disturbs too many pairs for this. A pair counts as disturbed where the median of
/// its own sum and those of both neighbours is more than 5 % above the usual sum: the lower quartile of the sums of the
/// class, corrected for the growth of all sums over a visit, which a growing cache causes. A disturbance from outside
/// lasts for some steps, and the sum does not say which of the arms it slowed; a single long step between two usual
/// ones stays, since a cost of the arm itself may come every few steps. A second estimate leaves out the disturbed
/// pairs but keeps at least a quarter of each class. It rests on fewer pairs, which may agree better, and is used where
/// the interquartile range of its differences, over the root of their number, is the smaller one. Beside a thread that
/// streams memory for 30 % of the time, gate blocks spread by 2.7 % with this choice and by 7.8 % without it (60 gate
/// blocks, one block per launch); on a calm machine the spread is as before.
///
/// Steps that the other visit lacks are left out. Where a visit has fewer than 8 steps, all pairs form one class and
/// none counts as disturbed. Returns none where there is no pair.
///
/// The design trims each visit by itself, before the comparison; on a virtual machine that shares its host, this made
/// the spread of a block's contrast twice as large, so that the same certainty took four times as long.
std::optional<double> log_ratio_of_pairs(std::span<const VisitPair> visits);

}  // namespace decodelab
