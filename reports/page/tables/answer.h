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

/// What one arm takes of the time of another, over all cells in which both were measured.
struct Effect {
  std::string arm;
  std::string baseline;
  std::int64_t cells = 0;
  double time_ratio = 1;
  std::optional<Interval> interval;  ///< Of `time_ratio`; none of one launch, or where cells share no launches.
  std::optional<Verdict> verdict;
  std::vector<std::pair<std::string, double>> phases{};  ///< Time ratio of each phase; empty where there is one phase.
};

/// Returns "bigcode takes 18 % less time than causal (time ratio 0.816 [0.785, 0.849], 8 cells): decode 12 % less,
/// prefill 25 % less", without an end. A difference that the interval does not show is called unresolved.
std::string effect_words(const Effect& effect);

/// Returns the effect of each arm of a run, the largest first.
std::vector<Effect> effects_of(const RunSummary& summary);

/// Returns the launches without which no row of the run has a verdict.
std::int64_t launches_needed(const RunSummary& summary);

/// Returns the answer of a run in at most four sentences: what went wrong with outputs, the largest effects, and the
/// verdict or what it still needs. `store` is named in the command that goes on, unless it is empty.
std::string answer_of(const RunSummary& summary, const std::string& store = "");

/// Returns the answer of a comparison: the effect over all of its cells. Two runs share no launches, which the sentence
/// says.
std::string answer_of(const std::vector<ComparedCell>& cells, bool one_run);

}  // namespace decodelab
