// One table: a column for each key of a row's JSON, so that no list of columns has to be kept here.
#include "reports/page/sql.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/page/json.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTable = "decodelab";

Json columns_of(const RunSummary& summary, const SummaryRow& row) {
  const RunRecord& run = summary.run;
  Json columns{{"run", run.uuid},
               {"run_name", run.name},
               {"started_unix_ns", run.started_unix_ns},
               {"build_commit", run.build.commit},
               {"cpu", run.machine.cpu},
               {"accelerator", run.machine.accelerator}};
  columns.update(row_to_json(row));
  return columns;
}

/// A row with every number known: its values tell the types of the columns.
SummaryRow full_row() {
  SummaryRow row;
  row.engaged = true;
  row.median_ns = row.mean_ns = row.min_ns = row.max_ns = row.p90_ns = row.p95_ns = row.p99_ns = row.peak_bytes = 1;
  row.time_ratio = row.time_ratio_low = row.time_ratio_high = row.speedup = row.mde = row.bound_share = 0.5;
  row.bound_share_low = row.bound_share_high = 0.5;
  row.comparison.launch_contrasts = {0.5, 0.5};
  row.agreement = {.logit_error = 0.5, .kl_divergence = 0.5, .top_1_agreement = 0.5};
  return row;
}

const char* type_of(const Json& value) {
  if (value.is_number_float()) return "REAL";
  return value.is_number() || value.is_boolean() ? "INTEGER" : "TEXT";
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

std::string literal(const Json& value) {
  if (value.is_null()) return "NULL";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number()) return json_text(value, -1);
  return quoted(value.is_string() ? value.get<std::string>() : json_text(value, -1));
}

}  // namespace

std::string sql_table() {
  const Json row = columns_of({}, full_row());
  std::string columns;
  for (const auto& [name, value] : row.items()) {
    columns += fmt::format("{}  {} {}", columns.empty() ? "" : ",\n", name, type_of(value));
  }
  return fmt::format("CREATE TABLE IF NOT EXISTS {} (\n{}\n);\n", kTable, columns);
}

std::string to_sql(const RunSummary& summary) {
  std::string text;
  for (const SummaryRow& row : summary.rows) {
    const Json known = columns_of(summary, row);
    std::string names;
    std::string values;
    for (const auto& [name, value] : known.items()) {
      names += (names.empty() ? "" : ", ") + name;
      values += (values.empty() ? "" : ", ") + literal(value);
    }
    text += fmt::format("INSERT INTO {} ({}) VALUES ({});\n", kTable, names, values);
  }
  return text;
}

}  // namespace decodelab
