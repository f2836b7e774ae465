// Flags that a sweep sets on its rows, each the name of one thing that a reader should know of the row.
// reports/page/tables/flag_words.cpp says each in a few words.
#pragma once

#include <string_view>

namespace decodelab {

/// The row's arm is lossy on purpose: its logits may be off by what its variants allow, and how far they are stands in
/// the row.
inline constexpr const char* kLossyFlag = "lossy";

/// The row's visits hold no whole period of steps.
inline constexpr const char* kPeriodNotCoveredFlag = "period-not-covered";

/// The warm-up ended before the steps were quiet.
inline constexpr const char* kWarmUpNotQuietFlag = "warm-up-not-quiet";

/// A counter that shows a variant at work did not move; the row's reason names it.
inline constexpr const char* kNotEngagedFlag = "not-engaged";

/// Another engine that returns no logits: only its tokens were compared with the reference's.
inline constexpr const char* kTokensOnlyFlag = "tokens-only";

/// A row in a 16-bit type whose arm was compared with the reference in float32, since it and the reference differ by
/// more than the tolerance; see compare_with_exact().
inline constexpr const char* kComparedWithFp32Flag = "compared-with-fp32";

/// The row's arm, in fp32, chose another token than the reference where rounding alone decides. It was compared once
/// more with the reference's tokens fed to both; see compare_after_near_tie().
inline constexpr const char* kNearTieFlag = "near-tie";

/// A row of phase batching in a 16-bit type: steps of a batch that does not change were compared with the reference's.
/// Which rows decode beside each other moves the rounding, so that tokens of requests are compared in fp32.
inline constexpr const char* kStepsComparedFlag = "steps-compared";

/// A row whose outputs were compared in another cell, `bN-lM`, which follows this prefix.
inline constexpr std::string_view kVerifiedAtFlag = "verified-at-";

/// A row of a cell whose arms do not run in slices although the plan asks for it: an arm cannot, all open visits
/// together need too much memory, or the tokens of a visit are read only at its end.
inline constexpr const char* kWholeVisitsFlag = "whole-visits";

/// A row of a server that sent some tokens in one event with a token before them: their own times are not known, and
/// the time of such an event is spread evenly.
inline constexpr const char* kTokensBundledFlag = "tokens-bundled";

/// A row whose worker was started for each visit anew, since memory does not hold all workers at once.
inline constexpr const char* kRestartedFlag = "restarted-each-visit";

/// Prefix of the flag of a row one of whose counters, which follows by its name, differed when the same steps were
/// counted again.
inline constexpr std::string_view kUnsteadyFlag = "unsteady-counters:";

}  // namespace decodelab
