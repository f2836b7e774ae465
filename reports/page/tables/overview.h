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

/// Per arm and phase the geometric mean of the time ratios over the cells in which every arm has one, with the
/// extremes.
Table overview_table(const RunSummary& summary);

/// Machine, build, model and settings, a column per run; fields that differ are named in a note.
Table environment_table(const std::vector<const RunRecord*>& runs);

/// Cells and arms that some of several runs have no row for; no rows when they all agree.
Table one_sided_table(const std::vector<const RunSummary*>& runs);

/// "nightly (run 3)" or "run 3".
std::string run_title(const RunRecord& run);

}  // namespace decodelab
