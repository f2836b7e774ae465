// Renders a comparison: the rows first, then what a reader must know to trust them.
#include "reports/page/comparison_page.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "reports/page/format.h"
#include "reports/page/json.h"
#include "reports/page/overview.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

bool is_one_run(const RunComparison& comparison) { return comparison.baseline.uuid == comparison.candidate.uuid; }

std::string ratio_text(const ComparedCell& row) {
  if (!row.time_ratio) return "";
  if (!row.interval) return fmt::format("{} {}", format_ratio(*row.time_ratio), kThisProcessOnly);
  return fmt::format("{} [{}, {}]", format_ratio(*row.time_ratio), format_ratio(row.interval->low),
                     format_ratio(row.interval->high));
}

std::vector<std::string> notes_of(const RunComparison& comparison) {
  std::vector<std::string> notes{
      "Time ratio: candidate / baseline, below 1 is faster. Intervals are of single cells, "
      "not adjusted for their number; there is no verdict."};
  if (is_one_run(comparison)) {
    notes.emplace_back("Paired within blocks, Student's t over launches.");
  } else {
    notes.emplace_back(
        "Two runs share no block: what the machine did between them is in the ratio and not in the interval (Welch's t "
        "between their launches). Put both arms into one sweep to cancel it.");
    const auto differences = differences_of(comparison.baseline, comparison.candidate);
    if (!differences.empty()) notes.push_back(fmt::format("The runs differ in {}.", fmt::join(differences, "; ")));
  }
  for (const ComparedCell& row : comparison.rows) {
    if (!row.reason.empty()) notes.push_back(fmt::format("{} ({}): {}.", cell_label(row.cell), row.arm, row.reason));
  }
  return notes;
}

Json row_of(const ComparedCell& row) {
  const auto bound = [&](double Interval::* side) {
    return row.interval ? Json((*row.interval).*side) : Json(nullptr);
  };
  return {{"arm", row.arm},
          {"baseline_arm", row.baseline_arm},
          {"phase", row.cell.phase},
          {"scope", row.cell.scope},
          {"batch", row.cell.batch},
          {"length", row.cell.length},
          {"dtype", row.cell.dtype},
          {"device", row.cell.device},
          {"threads", row.cell.threads},
          {"paired", row.paired},
          {"launches", row.launches},
          {"baseline_launches", row.baseline_launches},
          {"time_ratio", row.time_ratio ? Json(*row.time_ratio) : Json(nullptr)},
          {"time_ratio_low", bound(&Interval::low)},
          {"time_ratio_high", bound(&Interval::high)},
          {"speedup", row.time_ratio ? Json(1 / *row.time_ratio) : Json(nullptr)},
          {"reason", row.reason.empty() ? Json(nullptr) : Json(row.reason)}};
}

std::vector<Json> rows_of(const RunComparison& comparison) {
  std::vector<Json> rows;
  for (const ComparedCell& row : comparison.rows) rows.push_back(row_of(row));
  return rows;
}

}  // namespace

Table comparison_page_table(const RunComparison& comparison) {
  const bool one_arm = std::ranges::all_of(
      comparison.rows, [&](const ComparedCell& row) { return row.arm == comparison.rows.front().arm; });
  const std::string from =
      one_arm ? fmt::format("{} of {}", comparison.rows.front().baseline_arm, run_title(comparison.baseline))
              : run_title(comparison.baseline);
  const std::string to = one_arm ? fmt::format("{} of {}", comparison.rows.front().arm, run_title(comparison.candidate))
                                 : run_title(comparison.candidate);
  Table table{.title = fmt::format("{}, compared with {}", to, from),
              .columns = {{"Cell"}, {"Time ratio [95 %]", true}, {"Speed-up", true}, {"Launches", true}},
              .rows = {},
              .notes = notes_of(comparison)};
  if (!one_arm) table.columns.insert(table.columns.begin() + 1, {"Arm"});
  for (const ComparedCell& row : comparison.rows) {
    std::vector<std::string> fields{
        cell_label(row.cell), ratio_text(row), row.time_ratio ? fmt::format("{:.2f}x", 1 / *row.time_ratio) : "",
        row.paired ? std::to_string(row.launches) : fmt::format("{} / {}", row.launches, row.baseline_launches)};
    if (!one_arm) fields.insert(fields.begin() + 1, row.arm);
    table.rows.push_back({comparison.candidate.id, row.cell.id, std::move(fields)});
  }
  return table;
}

std::string comparison_to_json(const RunComparison& comparison) {
  const auto side = [](const RunRecord& run) { return Json{{"id", run.id}, {"uuid", run.uuid}, {"name", run.name}}; };
  return json_text({{"schema_version", kReportSchemaVersion},
                    {"baseline", side(comparison.baseline)},
                    {"candidate", side(comparison.candidate)},
                    {"differences", differences_of(comparison.baseline, comparison.candidate)},
                    {"rows", rows_of(comparison)}},
                   2) +
         "\n";
}

std::string comparison_to_jsonl(const RunComparison& comparison) {
  std::string text;
  for (const Json& row : rows_of(comparison)) text += json_text(row, -1) + "\n";
  return text;
}

std::string comparison_to_csv(const RunComparison& comparison) {
  return objects_to_csv(row_of({}), rows_of(comparison));
}

}  // namespace decodelab
