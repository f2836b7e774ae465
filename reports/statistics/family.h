// The one family of a run: every contrast to the baseline, and one composite for each arm.
#pragma once

#include <span>
#include <vector>

#include "reports/statistics/summary.h"

namespace decodelab {

/// Decides all contrasts of the run together and writes the decisions, their detectable effects and the composites into
/// `summary`.
///
/// A run that is not finished gets no verdict: while data are still being collected, the decision would be made many
/// times.
void decide(RunSummary& summary);

/// Returns the weight of each cell in a composite; the weights add up to 1. A weight is 1 / (phases x batches of the
/// phase x lengths of the batch).
std::vector<double> composite_weights(const std::vector<const CellRecord*>& cells);

/// Returns the composite of each launch: the sum over cells j of weights[j] * values[j][launch]. A launch that is NaN
/// in any cell is NaN, since its composite would cover other cells than those of the other launches.
std::vector<double> weighted_sum(std::span<const double> weights, std::span<const std::span<const double>> values);

}  // namespace decodelab
