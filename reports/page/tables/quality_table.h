// How well arms predict a text, as a table and in a cell's row.
#pragma once

#include <string>

#include "base/table.h"
#include "reports/statistics/summary.h"

namespace decodelab {

/// Returns `0.0136 ± 0.0011`, the mean KL divergence with its 95 % interval; empty where it is not known.
std::string divergence_words(const SummaryRow& row);
/// Returns `x1.013 ± 0.004`, the perplexity over the reference's with its 95 % interval; empty where it is not known.
std::string perplexity_words(const SummaryRow& row);
/// Returns the bytes of weights that a step of the row reads; empty where that is not known.
std::string weights_words(const SummaryRow& row);

/// Returns a row for each arm whose quality is known, or that has a reason instead; none where no quality was asked
/// for.
Table quality_table(const RunSummary& summary);

}  // namespace decodelab
