// Runs as data: one JSON object, JSON lines, and CSV of rows and of blocks. Later versions only add keys.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/statistics/summary.h"
#include "reports/store/record.h"

namespace decodelab {

/// `schema_version` of every JSON output.
inline constexpr int kReportSchemaVersion = 1;

/// Returns `json` as text and replaces bytes that are not UTF-8. An `indent` below 0 writes one line.
std::string json_text(const nlohmann::ordered_json& json, int indent);
/// Returns CSV: the keys of `header`, then a line of values for each row. Every row has the same keys as `header`; null
/// becomes an empty field, and the elements of an array are separated by spaces.
std::string objects_to_csv(const nlohmann::ordered_json& header, const std::vector<nlohmann::ordered_json>& rows);

/// Returns one row of `sweep -o json`, in the documented order of keys; null where unknown.
nlohmann::ordered_json row_to_json(const SummaryRow& row);
/// Returns the object of `sweep -o json`: schema_version, run, machine, rows.
nlohmann::ordered_json summary_to_json(const RunSummary& summary);

/// Returns a run's completions, an object each with the label of its arm: what the key `completions` of report.json
/// holds.
nlohmann::ordered_json completions_to_json(const RunData& data);

/// Returns summary_to_json() as indented text; bytes that are not UTF-8 are replaced.
std::string to_json(const RunSummary& summary);
/// Returns a line per row, each a JSON object with `run` (the uuid) so that files can be concatenated.
std::string to_jsonl(const RunSummary& summary);
/// Returns CSV: a header and a line per row. Unknown values are empty fields; flags are separated by spaces.
std::string to_csv(const RunSummary& summary);
/// Returns CSV: a header and a line per visit, in the order in which visits ran, with the mean (visit_statistic()) and
/// the median of its steps.
std::string blocks_to_csv(const RunData& data);

}  // namespace decodelab
