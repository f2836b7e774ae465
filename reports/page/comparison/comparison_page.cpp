// Renders a comparison: the rows first, then what a reader must know to trust them.
#include "reports/page/comparison/comparison_page.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "reports/page/exports/json.h"
#include "reports/page/tables/overview.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

std::string ratio_text(const ComparedCell& row) {
  if (!row.time_ratio) {
    return "";
  }
  return format_ratio(*row.time_ratio, row.interval);
}

std::vector<std::string> notes_of(const RunComparison& comparison) {
  std::vector<std::string> notes{
      "Time ratio: candidate / baseline, below 1 is faster. Intervals are of single cells, "
      "not adjusted for their number."};
  if (comparison.is_one_run()) {
    notes.emplace_back(
        "Paired within blocks, Student's t over launches; readings in capitals are verdicts of all cells as one "
        "family.");
  } else {
    notes.emplace_back(
        "Two runs share no block: what the machine did between them is in the ratio and not in the interval (Welch's t "
        "between their launches), so there is no verdict. Put both arms into one sweep to cancel it.");
    const auto differences = differences_of(comparison.baseline, comparison.candidate);
    if (!differences.empty()) {
      notes.push_back(fmt::format("The runs differ in {}.", fmt::join(differences, "; ")));
    }
  }
  std::map<std::string, std::vector<std::string>> reasons;
  for (const ComparedCell& row : comparison.rows) {
    if (!row.reason.empty()) {
      reasons[row.reason].push_back(fmt::format("{} ({})", cell_label(row.cell), row.arm));
    }
    if (!row.decision.reason.empty()) {
      reasons[row.decision.reason].push_back(fmt::format("{} ({})", cell_label(row.cell), row.arm));
    }
  }
  for (const auto& [reason, places] : reasons) {
    notes.push_back(fmt::format("{}{}: {}{}", places.front(),
                                places.size() == 1 ? "" : fmt::format(" and {} more", places.size() - 1), reason,
                                reason.ends_with('.') ? "" : "."));
  }
  return notes;
}

// An object, which is text in a field of CSV.
Json moved_of(const ComparedCell& row) {
  if (!row.moves || !row.moves->refusal.empty()) {
    return nullptr;
  }
  Json stages = Json::object();
  for (const StageMove& stage : row.moves->stages) {
    stages[stage.name] = stage.moved_ns();
  }
  stages["step"] = row.moves->step.moved_ns();
  return stages;
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
          {"reason", row.reason.empty() ? Json(nullptr) : Json(row.reason)},
          {"verdict", row.decision.verdict ? Json(to_string(*row.decision.verdict)) : Json(nullptr)},
          {"baseline_ns", row.baseline_ns ? Json(*row.baseline_ns) : Json(nullptr)},
          {"candidate_ns", row.candidate_ns ? Json(*row.candidate_ns) : Json(nullptr)},
          {"moved", moved_of(row)}};
}

std::vector<Json> rows_of(const RunComparison& comparison) {
  std::vector<Json> rows;
  for (const ComparedCell& row : comparison.rows) {
    rows.push_back(row_of(row));
  }
  return rows;
}

}  // namespace

RunComparison make_comparison(const ComparedSide& baseline, const ComparedSide& candidate) {
  return {.baseline = baseline.data->run,
          .candidate = candidate.data->run,
          .rows = compare_runs(baseline, candidate),
          .one_sided = one_sided_rows(baseline, candidate),
          .baseline_arms = baseline.data->arms,
          .candidate_arms = candidate.data->arms};
}

std::string comparison_reading(const ComparedCell& row) {
  if (!row.time_ratio) {
    return "not compared";
  }
  if (row.decision.verdict) {
    return to_string(*row.decision.verdict);
  }
  if (!row.interval) {
    return kThisProcessOnly;
  }
  const char* const reading = row.interval->high < 1  ? "looks faster"
                              : row.interval->low > 1 ? "looks slower"
                                                      : "not told apart";
  return reading;
}

Table comparison_page_table(const RunComparison& comparison, bool times) {
  const bool one_arm = !comparison.rows.empty() && std::ranges::all_of(comparison.rows, [&](const ComparedCell& row) {
    return row.arm == comparison.rows.front().arm;
  });
  const std::string from =
      one_arm ? fmt::format("{} of {}", comparison.rows.front().baseline_arm, run_title(comparison.baseline))
              : run_title(comparison.baseline);
  const std::string to = one_arm ? fmt::format("{} of {}", comparison.rows.front().arm, run_title(comparison.candidate))
                                 : run_title(comparison.candidate);
  Table table{.title = fmt::format("{}, compared with {}", to, from),
              .columns = {{"Cell"}, {"Time ratio [95 %]", true}, {"Speed-up", true}, {"Launches", true}, {"Reading"}},
              .rows = {},
              .notes = notes_of(comparison)};
  if (times) {
    table.columns.insert(table.columns.begin() + 1, {{"Baseline", true}, {"Candidate", true}});
  }
  if (!one_arm) {
    table.columns.insert(table.columns.begin() + 1, {"Arm"});
  }
  for (const ComparedCell& row : comparison.rows) {
    std::vector<std::string> fields{
        cell_label(row.cell), ratio_text(row), row.time_ratio ? fmt::format("{:.2f}x", 1 / *row.time_ratio) : "",
        row.paired ? std::to_string(row.launches) : fmt::format("{} / {}", row.launches, row.baseline_launches),
        comparison_reading(row)};
    if (times) {
      const auto text = [](const std::optional<double>& ns) { return ns ? format_time(*ns) : std::string(); };
      fields.insert(fields.begin() + 1, {text(row.baseline_ns), text(row.candidate_ns)});
    }
    if (!one_arm) {
      fields.insert(fields.begin() + 1, row.arm);
    }
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
  for (const Json& row : rows_of(comparison)) {
    text += json_text(row, -1) + "\n";
  }
  return text;
}

std::string comparison_to_csv(const RunComparison& comparison) {
  return objects_to_csv(row_of({}), rows_of(comparison));
}

}  // namespace decodelab
