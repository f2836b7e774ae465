// Builds the tables of a run from its rows.
#include "reports/page/tables/result_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "reports/page/tables/flag_words.h"
#include "reports/page/tables/quality_table.h"
#include "reports/page/tables/short_arms.h"
#include "reports/statistics/labels.h"
#include "reports/statistics/looks.h"

namespace decodelab {
namespace {

constexpr std::size_t kCellsInANote = 6;  // a longer list of cells says less than its count

using Rows = std::vector<const SummaryRow*>;

std::string step_name(const CellRecord& cell) {
  return cell.phase == Phase::batching ? cell.scope : words_of(cell.phase).step;
}

std::string status_name(const SummaryRow& row) {
  return row.status == RowStatus::planned ? (row.blocks > 0 ? "running" : "not run") : to_string(row.status);
}

std::string time_or_blank(const std::optional<std::int64_t>& ns) {
  return ns ? format_time(static_cast<double>(*ns)) : "";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), kCellsInANote); ++i) {
    text += (i == 0 ? "" : ", ") + parts[i];
  }
  if (parts.size() > kCellsInANote) {
    text += fmt::format(" and {} more", parts.size() - kCellsInANote);
  }
  return text;
}

// Returns the verdict where there is one, else the status of the row.
std::string verdict_name(const SummaryRow& row) {
  if (row.engaged == false) {
    return to_string(RowStatus::not_engaged);
  }
  return row.decision.verdict ? to_string(*row.decision.verdict) : status_name(row);
}

// Says why rows have no verdict or an inconclusive one, once for all rows that share the reason.
std::vector<std::string> verdict_notes(const Rows& rows) {
  std::map<std::string, std::vector<std::string>> places;
  std::int64_t most_launches = 0;
  for (const SummaryRow* row : rows) {
    if (row->decision.reason.empty()) {
      continue;
    }
    const bool inconclusive = row->decision.verdict.has_value();
    places[(inconclusive ? "INCONCLUSIVE: " : "No verdict: ") + row->decision.reason].push_back(
        fmt::format("{} ({})", cell_label(row->cell), row->arm.label));
    most_launches = std::max(most_launches, row->decision.more_launches.value_or(0));
  }
  std::vector<std::string> notes;
  for (const auto& [reason, labels] : places) {
    notes.push_back(fmt::format("{}: {}.", reason, joined(labels)));
  }
  if (most_launches > 0) {
    notes.push_back(fmt::format("About {} more launches would decide those that can be.", most_launches));
  }
  return notes;
}

// "b1 pp64, b4 pp64: bigcode is unsupported: reason", once for cells that share arm, status and reason.
std::vector<std::string> fate_notes(const Rows& rows) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> cells;
  for (const SummaryRow* row : rows) {
    const bool not_engaged = row->engaged == false;
    if (!not_engaged && (row->status == RowStatus::ok || (row->status == RowStatus::planned && row->reason.empty()))) {
      continue;
    }
    const std::string fate = not_engaged ? to_string(RowStatus::not_engaged) : status_name(*row);
    cells[{row->arm.label, fate, row->reason}].push_back(cell_label(row->cell));
  }
  std::vector<std::string> notes;
  for (const auto& [fate, labels] : cells) {
    const auto& [arm, status, reason] = fate;
    notes.push_back(fmt::format("{}: {} is {}{}{}", joined(labels), arm, status, reason.empty() ? "" : ": ",
                                reason.empty() ? "." : reason));
  }
  return notes;
}

std::vector<std::string> flag_notes(const Rows& rows) {
  std::map<std::string, std::vector<std::string>> places;
  for (const SummaryRow* row : rows) {
    for (const std::string& flag : row->flags) {
      places[flag].push_back(fmt::format("{} ({})", cell_label(row->cell), row->arm.label));
    }
  }
  std::vector<std::string> notes;
  for (const auto& [flag, labels] : places) {
    const std::string_view words = words_of_flag(flag);
    notes.push_back(fmt::format("Flag '{}'{}: {}.", flag, words.empty() ? "" : fmt::format(" ({})", words),
                                labels.size() == rows.size() ? "every row" : joined(labels)));
  }
  return notes;
}

// Says why percentiles are blank, by the rules of the columns shown; once for all tables of a run.
std::vector<std::string> percentile_notes(const RunSummary& summary) {
  std::vector<std::string> notes;
  for (const PercentileRule& rule : kPercentileRules) {
    if (std::string_view(rule.name) == "p95") {
      continue;  // not a column of these tables
    }
    std::vector<std::string> blank;
    std::int64_t measured = 0;
    for (const SummaryRow& row : summary.rows) {
      measured += row.steps > 0 ? 1 : 0;
      if (row.steps > 0 && (row.steps < rule.steps || row.launches < rule.launches)) {
        blank.push_back(fmt::format("{} of {} ({} steps, {} launches)", cell_label(row.cell), row.arm.label, row.steps,
                                    row.launches));
      }
    }
    if (blank.empty()) {
      continue;
    }
    notes.push_back(fmt::format("{} is blank {}: it needs {} steps and {} launches.", rule.name,
                                static_cast<std::int64_t>(blank.size()) == measured
                                    ? fmt::format("everywhere, as in {}", blank.front())
                                    : "in " + joined(blank),
                                rule.steps, rule.launches));
  }
  return notes;
}

Table latency_table(const Rows& rows) {
  const SummaryRow& first = *rows.front();
  Table table{
      .title = fmt::format("{}, length {} ({}, {}, {} thread{})", first.arm.label, first.cell.length, first.cell.dtype,
                           first.cell.device, first.cell.threads, first.cell.threads == 1 ? "" : "s"),
      .columns = {{"Step"},
                  {"Batch Size", true},
                  {"Average", true},
                  {"Lowest", true},
                  {"Highest", true},
                  {"p50", true},
                  {"p90", true},
                  {"p99", true}},
      .rows = {},
      .notes = fate_notes(rows)};
  for (const SummaryRow* row : rows) {
    table.rows.push_back({row->run_id,
                          row->cell.id,
                          {step_name(row->cell), std::to_string(row->cell.batch), time_or_blank(row->mean_ns),
                           time_or_blank(row->min_ns), time_or_blank(row->max_ns), time_or_blank(row->median_ns),
                           time_or_blank(row->p90_ns), time_or_blank(row->p99_ns)}});
  }
  return table;
}

std::string bound_share(const SummaryRow& row) {
  if (!row.bound_share) {
    return "";
  }
  if (!row.bound_share_low || !row.bound_share_high) {
    return format_percent(*row.bound_share);
  }
  return fmt::format("{:.0f} % [{:.0f}, {:.0f}]", 100 * *row.bound_share, 100 * *row.bound_share_low,
                     100 * *row.bound_share_high);
}

Table comparison_table(const RunSummary& summary, const std::string& setting, const Rows& rows, ArmLabels labels) {
  const std::string baseline = summary.baseline();
  Table table{.title = baseline.empty() ? fmt::format("Arms without a baseline ({})", setting)
                                        : fmt::format("Compared with {} ({})", baseline, setting),
              .columns = {{"Cell"},
                          {"Arm"},
                          {"Median", true},
                          {fmt::format("Time ratio [{}]", summary.interval_level()), true},
                          {"Detects", true},
                          {"Peak", true},
                          {"Verdict"}},
              .rows = {},
              .notes = {}};
  const bool bounds = std::ranges::any_of(rows, [](const SummaryRow* row) { return row->bound_share.has_value(); });
  // Where a loss stands beside the time, what the run can detect stands in other tables.
  const bool qualities = std::ranges::any_of(rows, [](const SummaryRow* row) { return row->quality.has_value(); });
  if (qualities) {
    table.columns[4] = {"Weights", true};
    table.columns[5] = {"KL divergence", true};
    table.columns.insert(table.columns.end() - 1, {"Perplexity", true});
  }
  if (bounds) {
    table.columns.insert(table.columns.end() - 1, {"Of bound", true});
  }
  for (const SummaryRow* row : rows) {
    TableRow line{row->run_id,
                  row->cell.id,
                  {cell_label(row->cell), row->arm.label, time_or_blank(row->median_ns), format_ratio(*row),
                   row->mde ? format_detectable(*row->mde) : "", row->peak_bytes ? format_bytes(*row->peak_bytes) : "",
                   verdict_name(*row)}};
    if (qualities) {
      line.fields[4] = weights_words(*row);
      line.fields[5] = divergence_words(*row);
      line.fields.insert(line.fields.end() - 1, perplexity_words(*row));
    }
    if (bounds) {
      line.fields.insert(line.fields.end() - 1, bound_share(*row));
    }
    table.rows.push_back(std::move(line));
  }
  if (labels == ArmLabels::short_where_wide) {
    shorten_arms(table, 1, summary.arms);
  }
  std::vector<std::string> unpaired;
  for (const SummaryRow* row : rows) {
    if (row->blocks > 0 && row->comparable() && !row->time_ratio && !row->arm.roofline() && !baseline.empty()) {
      unpaired.push_back(fmt::format("{} ({})", cell_label(row->cell), row->arm.label));
    }
  }
  if (!unpaired.empty()) {
    table.notes.push_back(fmt::format("No ratio, since the baseline was not measured there: {}.", joined(unpaired)));
  }
  for (auto notes : {verdict_notes(rows), fate_notes(rows), flag_notes(rows)}) {
    for (std::string& note : notes) {
      table.notes.push_back(std::move(note));
    }
  }
  if (!baseline.empty()) {
    table.notes.emplace_back(
        "Time ratio: arm / baseline, below 1 is faster; paired within blocks, averaged over launches, with its "
        "Student-t interval. It differs from the "
        "quotient of two medians, which is not paired: that one keeps the drift between visits that pairing cancels, "
        "and drops costs that come only every few steps.");
    if (qualities) {
      table.notes.emplace_back(
          "Weights: the bytes of weights that a step reads. KL divergence and Perplexity: of the arm's predictions of "
          "a text, from and over those of the reference in fp32, with 1.96 standard errors.");
    } else {
      table.notes.emplace_back(
          "Detects: the smallest effect that this many launches find with 80 % power; none: not even a tenfold one.");
    }
    if (bounds) {
      table.notes.emplace_back(
          "Of bound: the time that the slower of roofline-read (the cell's bytes) and roofline-gemm (its "
          "floating-point operations) takes in the same blocks over the arm's, with its 95 % interval.");
      if (std::ranges::any_of(rows, [](const SummaryRow* row) { return row->counters.contains(kSavedBytes); })) {
        table.notes.emplace_back(
            "Of an arm whose weights are held in fewer bits it is the time that roofline-read takes for those bytes.");
      }
    }
    if (summary.adaptive) {
      table.notes.push_back(fmt::format("Launches were added until the looks at {} decided: intervals hold {}.",
                                        fmt::join(adaptive_looks().looks, ", "), kIntervalWithLooks));
    }
  }
  return table;
}

}  // namespace

std::vector<Table> latency_tables(const RunSummary& summary) {
  // Whole completions have a scope of their own, but where a server makes them, and yet belong to this table, as its
  // row Decode (total).
  using Key = std::tuple<std::int64_t, std::int64_t, std::string, std::string, std::int64_t, std::string, std::string>;
  std::map<Key, Rows> groups;
  for (const SummaryRow& row : summary.rows) {
    const bool whole = row.cell.phase == Phase::generate && !row.cell.scope.starts_with("serving");
    const std::string scope = whole ? "" : row.cell.phase == Phase::batching ? "batching" : row.cell.scope;
    groups[{row.arm.id, row.cell.length, row.cell.dtype, row.cell.device, row.cell.threads, row.cell.fill, scope}]
        .push_back(&row);
  }
  for (auto& [key, rows] : groups) {
    if (!std::get<6>(key).empty()) {
      continue;
    }
    for (auto& [other, target] : groups) {
      auto bare = other;
      std::get<6>(bare).clear();
      if (std::get<6>(other).empty() || bare != key) {
        continue;
      }
      target.insert(target.end(), rows.begin(), rows.end());
      rows.clear();
      break;
    }
  }
  std::vector<Table> tables;
  for (auto& [key, rows] : groups) {
    if (rows.empty()) {
      continue;
    }
    std::sort(rows.begin(), rows.end(), [](const SummaryRow* a, const SummaryRow* b) {
      const auto place = [](const SummaryRow* row) {
        return std::tuple(row->cell.phase, step_name(row->cell), row->cell.batch, row->cell.id);
      };
      return place(a) < place(b);
    });
    tables.push_back(latency_table(rows));
  }
  if (!tables.empty()) {
    for (std::string& note : percentile_notes(summary)) {
      tables.back().notes.push_back(std::move(note));
    }
  }
  return tables;
}

std::vector<Table> comparison_tables(const RunSummary& summary, ArmLabels labels) {
  std::vector<std::pair<std::string, Rows>> groups;  // in the order in which settings were planned
  for (const SummaryRow& row : summary.rows) {
    const std::string setting = setting_label(row.cell);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.first == setting; });
    if (group == groups.end()) {
      group = groups.insert(group, {setting, {}});
    }
    group->second.push_back(&row);
  }
  std::vector<Table> tables;
  for (const auto& [setting, rows] : groups) {
    tables.push_back(comparison_table(summary, setting, rows, labels));
  }
  return tables;
}

namespace {

// "2 of 8 cells have not run", where a shard or a killed sweep left rows as they were planned; else empty.
std::string not_run_note(const RunSummary& summary) {
  std::set<std::int64_t> cells;
  std::set<std::int64_t> not_run;
  for (const SummaryRow& row : summary.rows) {
    cells.insert(row.cell.id);
    if (row.status == RowStatus::planned && row.blocks == 0) {
      not_run.insert(row.cell.id);
    }
  }
  if (not_run.empty()) {
    return "";
  }
  return fmt::format("{} of {} cells {} not run.", not_run.size(), cells.size(), not_run.size() == 1 ? "has" : "have");
}

std::string ratio_of(const Composite& composite) { return format_ratio(composite.time_ratio, composite.interval); }

}  // namespace

Table composite_table(const RunSummary& summary) {
  Table table{.title = fmt::format("All cells together, compared with {}", summary.baseline()),
              .columns = {{"Arm"},
                          {"Cells", true},
                          {fmt::format("Time ratio [{}]", summary.interval_level()), true},
                          {"Detects", true},
                          {"Verdict"}},
              .rows = {},
              .notes = {"Phases weigh the same, within a phase the batches, within a batch the lengths."}};
  if (std::string note = not_run_note(summary); !note.empty()) {
    table.notes.push_back(std::move(note));
  }
  for (const Composite& composite : summary.composites) {
    const Decision& decision = composite.decision;
    table.rows.push_back({summary.run.id,
                          0,
                          {composite.arm.label, std::to_string(composite.cells), ratio_of(composite),
                           decision.mde ? format_detectable(*decision.mde) : "",
                           decision.verdict ? to_string(*decision.verdict) : "none"}});
  }
  return table;
}

Table effect_table(const RunSummary& summary) {
  Table table{.title = fmt::format("Switches by effect, compared with {}", summary.baseline()),
              .columns = {{"Arm"}, {fmt::format("Time ratio [{}]", summary.interval_level()), true}, {"Verdict"}},
              .rows = {},
              .notes = {summary.ablation == "add-one"
                            ? "Below 1: the arm is faster with the switch. The largest change comes first."
                            : "Above 1: the arm is slower without the switch. The largest change comes first."}};
  if (summary.ablation.empty()) {
    return table;
  }
  std::vector<std::pair<double, TableRow>> effects;
  const auto add = [&](double time_ratio, const ArmRecord& arm, std::string ratio, const Decision& decision) {
    effects.push_back(
        {std::abs(std::log(time_ratio)),
         {summary.run.id, 0, {arm.label, std::move(ratio), decision.verdict ? to_string(*decision.verdict) : "none"}}});
  };
  for (const Composite& composite : summary.composites) {
    add(composite.time_ratio, composite.arm, ratio_of(composite), composite.decision);
  }
  if (summary.composites.empty()) {
    for (const SummaryRow& row : summary.rows) {
      if (row.time_ratio && !row.arm.baseline) {
        add(*row.time_ratio, row.arm, format_ratio(row), row.decision);
      }
    }
  }
  std::ranges::stable_sort(effects, std::greater<>(), [](const auto& effect) { return effect.first; });
  for (auto& [size, row] : effects) {
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table ledger_table(const RunSummary& summary) {
  Table table{.title = "Planned, measured and excluded cells",
              .columns = {{"Arm"}, {"Planned", true}, {"ok", true}, {"Excluded", true}, {"Why"}},
              .rows = {},
              .notes = {}};
  for (const ArmRecord& arm : summary.arms) {
    std::int64_t planned = 0;
    std::int64_t ok = 0;
    std::map<std::string, std::int64_t> excluded;
    for (const SummaryRow& row : summary.rows) {
      if (row.arm.id != arm.id) {
        continue;
      }
      ++planned;
      if (row.status == RowStatus::ok) {
        ++ok;
      } else {
        ++excluded[status_name(row)];
      }
    }
    std::vector<std::string> why;
    for (const auto& [status, count] : excluded) {
      why.push_back(fmt::format("{} {}", count, status));
    }
    table.rows.push_back({0,
                          0,
                          {arm.label + (arm.baseline ? " (baseline)" : ""), std::to_string(planned), std::to_string(ok),
                           std::to_string(planned - ok), joined(why)}});
  }
  Rows rows;
  for (const SummaryRow& row : summary.rows) {
    rows.push_back(&row);
  }
  table.notes = fate_notes(rows);
  return table;
}

}  // namespace decodelab
