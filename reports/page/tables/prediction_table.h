// Predicted completions beside measured ones, as a table.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/prediction.h"

namespace decodelab {

/// Returns the columns Completion | Arm | Prefill | Decode | Total [95 %] | Measured [95 %] | Measured / predicted; the
/// notes list the refusals. The table has no rows and no notes where there are no predictions.
Table prediction_table(const std::vector<Prediction>& predictions);

/// Returns the predictions for completions_of(), as the report shows them. The table has no rows where the run has no
/// measured curves to predict from.
Table prediction_table(const RunSummary& summary);

}  // namespace decodelab
