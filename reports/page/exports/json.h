// Runs as data: one JSON object, JSON lines, and CSV of rows and of blocks. Keys only ever get added.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/statistics/summary.h"
#include "reports/store/record.h"

namespace decodelab {

/// `schema_version` of every JSON output.
inline constexpr int kReportSchemaVersion = 1;

/// `json` as text; bytes that are no UTF-8 are replaced. `indent` below 0: in one line.
std::string json_text(const nlohmann::ordered_json& json, int indent);
/// The keys of `header`, then a line of values for each row, which has the same keys; null is an empty field, an array
/// is joined by spaces.
std::string objects_to_csv(const nlohmann::ordered_json& header, const std::vector<nlohmann::ordered_json>& rows);

/// One row of `sweep -o json`, in the documented order of keys; null where unknown.
nlohmann::ordered_json row_to_json(const SummaryRow& row);
/// The object of `sweep -o json`: schema_version, run, machine, rows.
nlohmann::ordered_json summary_to_json(const RunSummary& summary);

/// summary_to_json() as text, indented; bytes that are no UTF-8 are replaced.
std::string to_json(const RunSummary& summary);
/// A JSON object per line, a line per row, each with `run` (the uuid) so that files can be concatenated.
std::string to_jsonl(const RunSummary& summary);
/// A header and a line per row; empty fields where unknown, flags separated by spaces.
std::string to_csv(const RunSummary& summary);
/// A header and a line per visit in the order in which they ran, with the visit statistic: what the contrasts are made
/// of.
std::string blocks_to_csv(const RunData& data);

}  // namespace decodelab
