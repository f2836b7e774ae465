// What a reader wants to know first of a run: what was compared, what it resolves, whether to trust it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/summary.h"

namespace decodelab {

struct Overview {
  std::string answer;               ///< The result, as answer_of() says it.
  std::string compared;             ///< "bigcode against causal: synthetic:santacoder, 42 cells."
  std::string resolution;           ///< "Resolves >= 2.1 % ..." or that a single launch resolves nothing.
  std::vector<std::string> badges;  ///< Short facts: launches, in-run null, engagement, random weights.
};

Overview overview_of(const RunData& data, const RunSummary& summary);

/// Returns, for each arm and phase, the geometric mean and the extremes of the time ratios over the cells in which
/// every arm has one.
Table overview_table(const RunSummary& summary);

/// Returns machine, build, model and settings, a column per run; a note names the fields that differ.
Table environment_table(const std::vector<const RunRecord*>& runs);

/// Returns the cells and arms for which only some of the runs have a row; no rows where all runs agree.
Table one_sided_table(const std::vector<const RunSummary*>& runs);

/// Returns "nightly (run 3)", or "run 3" for a run without a name.
std::string run_title(const RunRecord& run);

}  // namespace decodelab
