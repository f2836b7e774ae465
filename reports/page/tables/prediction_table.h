// Predicted completions beside measured ones, as a table and as data.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "reports/statistics/prediction.h"

namespace decodelab {

/// Completion | Arm | Prefill | Decode | Total [95 %] | Measured [95 %] | Measured / predicted; refusals stand in the notes. No rows and
/// no notes for no predictions.
Table prediction_table(const std::vector<Prediction>& predictions);

/// The predictions of completions_of(): the line of the report. No rows where the run has no curves to add up.
Table prediction_table(const RunSummary& summary);

/// A JSON object with `schema_version` and `predictions`, a list; null where unknown.
std::string predictions_to_json(const std::vector<Prediction>& predictions);
std::string predictions_to_csv(const std::vector<Prediction>& predictions);

}  // namespace decodelab
