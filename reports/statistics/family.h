// The one family of a run: every contrast to the baseline, and one composite for each arm.
#pragma once

#include <span>
#include <vector>

#include "reports/statistics/summary.h"

namespace decodelab {

/// Decides all contrasts of the run together and writes the decisions, their detectable effects and the composites into
/// `summary`.
///
/// A run that is not finished gets no verdict: a decision made while the data come in would be made many times.
void decide(RunSummary& summary);

/// What each cell weighs in a composite, 1 together: 1 / (phases x batches of the phase x lengths of the batch).
std::vector<double> composite_weights(const std::vector<const CellRecord*>& cells);

/// The composite of each launch: sum over cells j of weights[j] * values[j][launch]. A launch that is NaN in any cell
/// is NaN, or its composite would be of other cells than the others'.
std::vector<double> weighted_sum(std::span<const double> weights, std::span<const std::span<const double>> values);

}  // namespace decodelab
