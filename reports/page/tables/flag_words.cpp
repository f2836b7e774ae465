// Knows the flags by their names: those that a sweep sets, and those that statistics set.
#include "reports/page/tables/flag_words.h"

#include <algorithm>
#include <array>

#include "reports/statistics/comparison.h"
#include "reports/statistics/row_checks.h"
#include "reports/statistics/summary.h"
#include "reports/store/flags.h"

namespace decodelab {
namespace {

struct FlagWords {
  std::string_view name;
  std::string_view words;
};

constexpr std::array kFlags{
    FlagWords{kCarryOverFlag, "a step takes another time after another arm's than after the arm's own"},
    FlagWords{kSlopeFlag, "its ratio still changes within a visit"},
    FlagWords{kMedianDiffersFlag, "medians do not show the difference that means show"},
    FlagWords{kRareCostsFlag, "a cost that comes too rarely to be in its ratio"},
    FlagWords{kWarmUpNotQuietFlag, "steps were still uneven when timing began"},
    FlagWords{kPeriodNotCoveredFlag, "its visits hold no whole period of 8 steps"},
    FlagWords{kThisProcessOnly, "one launch says nothing about other processes"},
    FlagWords{kVoidBlocksFlag, "blocks were left out, in which other processes used the cores"},
    FlagWords{kDisturbedFlag, "other processes used the cores in blocks that count"},
    FlagWords{kSaturatedFlag, "other processes used too much of the cores for a verdict"},
    FlagWords{kLossyFlag, "its logits may be off by what its variants allow"},
    FlagWords{kTokensOnlyFlag, "it returns no logits, so that its tokens alone were compared"},
    FlagWords{kComparedWithFp32Flag, "its outputs were compared with the reference's in fp32"},
    FlagWords{kNearTieFlag, "it chose another token where two were equally likely, up to rounding"},
    FlagWords{kStepsComparedFlag, "outputs were compared in a batch that does not change"},
    FlagWords{kWholeVisitsFlag, "arms took turns after whole visits, not after a few steps"},
    FlagWords{kTokensBundledFlag, "some tokens came together, so that their own times are not known"},
    FlagWords{kRestartedFlag, "memory does not hold all engines, so that each visit started its own"},
    FlagWords{kNotEngagedFlag, "counters do not show that its variants ran"},
};

// Flags with a value in their name.
constexpr std::array kPrefixes{
    FlagWords{kVerifiedAtFlag, "outputs were compared at that batch and length"},
    FlagWords{kUnsteadyFlag, "it differed when the same steps were counted again"},
};

}  // namespace

std::string_view words_of_flag(const std::string& flag) {
  if (const auto* found = std::ranges::find(kFlags, flag, &FlagWords::name); found != kFlags.end()) {
    return found->words;
  }
  const auto* begins =
      std::ranges::find_if(kPrefixes, [&](const FlagWords& each) { return flag.starts_with(each.name); });
  return begins != kPrefixes.end() ? begins->words : std::string_view();
}

}  // namespace decodelab
