// Predicted completions beside measured ones, as a table.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/prediction.h"

namespace decodelab {

/// Completion | Arm | Prefill | Decode | Total [95 %] | Measured [95 %] | Measured / predicted; refusals stand in the
/// notes. The table has no rows and no notes where there are no predictions.
Table prediction_table(const std::vector<Prediction>& predictions);

/// The predictions of completions_of(), as the report shows them. The table has no rows where the run has no curves to
/// add up.
Table prediction_table(const RunSummary& summary);

}  // namespace decodelab
