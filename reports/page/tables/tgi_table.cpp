// Groups the rows of a run as text-generation-benchmark does.
#include "reports/page/tables/tgi_table.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

constexpr double kNsOfAMs = 1e6;
// TGI shows two decimals, which are too few for the steps of a small model: small values get three significant digits.
constexpr int kDecimals = 2;
constexpr int kSignificant = 3;

/// What one table shows: an arm at one length under one setting. Completions have a scope of their own but belong to
/// the same table.
struct Group {
  std::string arm;
  CellRecord like;
  std::vector<const SummaryRow*> rows;

  bool takes(const SummaryRow& row) const {
    const auto key = [](const CellRecord& cell) {
      return std::tie(cell.length, cell.dtype, cell.device, cell.threads, cell.fill);
    };
    const bool scopes_fit =
        row.cell.phase == Phase::generate || like.phase == Phase::generate || row.cell.scope == like.scope;
    return row.arm.label == arm && key(row.cell) == key(like) && scopes_fit;
  }
};

std::vector<Group> groups_of(const RunSummary& summary, const std::string& arm) {
  std::vector<Group> groups;
  for (const SummaryRow& row : summary.rows) {
    if (row.arm.roofline() || (!arm.empty() && row.arm.label != arm)) {
      continue;
    }
    auto group = std::ranges::find_if(groups, [&](const Group& known) { return known.takes(row); });
    if (group == groups.end()) {
      group = groups.insert(group, {row.arm.label, row.cell, {}});
    }
    group->rows.push_back(&row);
  }
  return groups;
}

std::string value(double number, const char* unit) {
  const int magnitude = number > 0 ? static_cast<int>(std::floor(std::log10(number))) : 0;
  const int decimals = std::max(kDecimals, kSignificant - 1 - magnitude);
  return fmt::format("{:.{}f} {}", number, decimals, unit);
}

std::string ms(const std::optional<std::int64_t>& ns) {
  return ns ? value(static_cast<double>(*ns) / kNsOfAMs, "ms") : "";
}

std::string rate(const SummaryRow& row, const std::optional<std::int64_t>& ns) {
  if (!ns || *ns <= 0) {
    return "";
  }
  return value(static_cast<double>(row.cell.batch) * kNsOfASecond / static_cast<double>(*ns), "tokens/secs");
}

std::vector<const SummaryRow*> of_phase(const Group& group, Phase phase) {
  std::vector<const SummaryRow*> rows;
  for (const SummaryRow* row : group.rows) {
    if (row->cell.phase == phase && row->steps > 0 && row->comparable()) {
      rows.push_back(row);
    }
  }
  std::ranges::stable_sort(rows, {}, [](const SummaryRow* row) { return row->cell.batch; });
  return rows;
}

void add_rows(Table& table, const Group& group, Phase phase, const char* step, bool throughput) {
  bool first = true;
  for (const SummaryRow* row : of_phase(group, phase)) {
    std::vector<std::string> fields{first ? step : "", std::to_string(row->cell.batch)};
    if (throughput) {
      for (const auto& ns : {row->mean_ns, row->max_ns, row->min_ns}) {
        fields.push_back(rate(*row, ns));
      }
    } else {
      for (const auto& ns : {row->mean_ns, row->min_ns, row->max_ns, row->median_ns, row->p90_ns, row->p99_ns}) {
        fields.push_back(ms(ns));
      }
    }
    table.rows.push_back({row->run_id, row->cell.id, std::move(fields)});
    first = false;
  }
}

Table empty_table(const Group& group, const char* what) {
  const CellRecord& cell = group.like;
  Table table{.title = fmt::format("{} of {}, sequence length {} ({}, {}, {} thread{})", what, group.arm, cell.length,
                                   cell.dtype, cell.device, cell.threads, cell.threads == 1 ? "" : "s"),
              .columns = {{"Step"}, {"Batch Size", true}, {"Average", true}, {"Lowest", true}, {"Highest", true}},
              .rows = {},
              .notes = {}};
  return table;
}

std::vector<std::string> latency_notes(const Group& group) {
  std::vector<std::string> notes;
  std::string blank;
  for (const PercentileRule& rule : kPercentileRules) {
    if (std::string_view(rule.name) == "p95") {
      continue;  // no column of these tables
    }
    const bool missing = std::ranges::any_of(group.rows, [&](const SummaryRow* row) {
      return row->steps > 0 && (row->steps < rule.steps || row->launches < rule.launches);
    });
    if (missing) {
      blank +=
          fmt::format("{}{} ({} steps, {} launches)", blank.empty() ? "" : ", ", rule.name, rule.steps, rule.launches);
    }
  }
  if (!blank.empty()) {
    notes.push_back(fmt::format("Blank where too little was timed: {}.", blank));
  }
  if (!of_phase(group, Phase::generate).empty()) {
    notes.emplace_back(
        "Decode (total) is a whole completion here, its prefill included; text-generation-benchmark's begins after the "
        "prefill.");
  }
  for (const SummaryRow* row : group.rows) {
    if (row->comparable() && row->steps > 0) {
      continue;
    }
    notes.push_back(fmt::format("{}: {}{}{}", cell_label(row->cell),
                                row->engaged == false ? to_string(RowStatus::not_engaged) : to_string(row->status),
                                row->reason.empty() ? "." : ": ", row->reason));
  }
  return notes;
}

}  // namespace

std::vector<Table> tgi_tables(const RunSummary& summary, const std::string& arm) {
  std::vector<Table> tables;
  for (const Group& group : groups_of(summary, arm)) {
    Table latency = empty_table(group, "Latency");
    for (const char* percentile : {"p50", "p90", "p99"}) {
      latency.columns.push_back({percentile, true});
    }
    add_rows(latency, group, Phase::prefill, words_of(Phase::prefill).step, false);
    add_rows(latency, group, Phase::decode, words_of(Phase::decode).step, false);
    add_rows(latency, group, Phase::generate, words_of(Phase::generate).step, false);
    latency.notes = latency_notes(group);
    Table throughput = empty_table(group, "Throughput");
    add_rows(throughput, group, Phase::prefill, "Prefill", true);
    add_rows(throughput, group, Phase::decode, "Decode", true);
    throughput.notes = {
        "Tokens made a second, of all rows of the batch together. Average: the batch over the average latency."};
    tables.push_back(std::move(latency));
    if (!throughput.rows.empty()) {
      tables.push_back(std::move(throughput));
    }
  }
  return tables;
}

}  // namespace decodelab
