// The result of a run, or of a comparison, as a sentence that stands before everything else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/statistics/run_comparison.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// The time of one arm relative to that of another, over all cells in which both were measured.
struct Effect {
  std::string arm;
  std::string baseline;
  std::int64_t cells = 0;
  double time_ratio = 1;
  std::optional<Interval> interval;  ///< Of `time_ratio`; none for one launch, or where cells share no launches.
  std::optional<Verdict> verdict;
  std::vector<std::pair<std::string, double>> phases{};  ///< Time ratio of each phase; empty where there is one phase.
};

/// Returns "bigcode takes 18 % less time than causal (time ratio 0.816 [0.785, 0.849], 8 cells): decode 12 % less,
/// prefill 25 % less", without a full stop. A difference that the interval does not show is called unresolved.
std::string effect_words(const Effect& effect);

/// Returns the effect of each arm of a run, the largest first.
std::vector<Effect> effects_of(const RunSummary& summary);

/// Returns the number of launches that a row of the run needs before it can have a verdict.
std::int64_t launches_needed(const RunSummary& summary);

/// Returns the answer of a run in at most four sentences: what went wrong with outputs, the largest effects, and the
/// verdict or what it still needs. The command that adds the missing launches names `store`, unless that is empty.
std::string answer_of(const RunSummary& summary, const std::string& store = "");

/// Returns the answer of a comparison: the effect over all of its cells. Two runs share no launches, and the sentence
/// says so.
std::string answer_of(const std::vector<ComparedCell>& cells, bool one_run);

}  // namespace decodelab
