// The tables of a comparison that say why: what differs, which counters moved, which stages, and what only one side
// has.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/page/comparison/comparison_page.h"
#include "reports/page/tables/overview.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

constexpr std::size_t kCellsInAField = 2;     // a longer list says less than its count
constexpr std::size_t kMostCounterRows = 40;  // with more rows, single operators hide their totals
constexpr const char* kOperatorPrefix = "op.";
constexpr const char* kCountedSteps = "counted_steps";

std::string places(const std::set<std::string>& cells) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& cell : cells) {
    if (shown++ < kCellsInAField) {
      text += (text.empty() ? "" : ", ") + cell;
    }
  }
  return cells.size() <= kCellsInAField ? text : fmt::format("{} and {} more", text, cells.size() - kCellsInAField);
}

std::string engine_of(const ArmRecord& arm) {
  return arm.engine.empty() ? "decodelab" : fmt::format("{} {} {}", arm.engine, arm.version, arm.settings);
}

/// A count for one step.
std::optional<double> a_step(const Counters& counters, const std::string& name) {
  const auto steps = counters.find(kCountedSteps);
  if (steps == counters.end() || steps->second <= 0) {
    return std::nullopt;
  }
  const auto found = counters.find(name);
  return found == counters.end() ? 0.0 : static_cast<double>(found->second) / static_cast<double>(steps->second);
}

std::string count_text(double value) { return fmt::format("{:g}", std::round(value * 1000) / 1000); }

/// The unit of the times in one table, and the grain that they are rounded to, so that the rows add up as shown.
struct TimeUnit {
  const char* name;
  double ns;
  double grain_ns;  ///< Value of the last digit shown.
  std::string text(double ns_value, bool sign) const {
    const double value = ns_value / ns;
    return sign ? fmt::format("{:+.3f}", value) : fmt::format("{:.3f}", value);
  }
  double rounded(double ns_value) const { return std::round(ns_value / grain_ns) * grain_ns; }
};

TimeUnit unit_for(double ns) { return ns < 1e6 ? TimeUnit{"us", 1e3, 1} : TimeUnit{"ms", 1e6, 1e3}; }

Table moves_table(const StageMoves& moves) {
  Table table{.title = fmt::format("{}: {} compared with {}, a traced step", cell_label(moves.cell), moves.arm,
                                   moves.baseline_arm),
              .columns = {},
              .rows = {},
              .notes = {}};
  const TimeUnit unit = unit_for(std::max(moves.step.baseline_ns, moves.step.candidate_ns));
  table.columns = {{"Stage"},
                   {fmt::format("Baseline ({})", unit.name), true},
                   {fmt::format("Candidate ({})", unit.name), true},
                   {fmt::format("Moved ({})", unit.name), true},
                   {"Of the whole", true}};
  if (!moves.refusal.empty()) {
    table.notes = {fmt::format("No numbers: {}.", moves.refusal)};
    return table;
  }
  // Times are rounded first and added up afterwards, so that the stages shown add up to the whole step.
  double before = 0;
  double after = 0;
  const double whole = moves.step.moved_ns();
  const auto add = [&](const std::string& name, double baseline_ns, double candidate_ns, bool of_whole) {
    const double moved = candidate_ns - baseline_ns;
    table.rows.push_back({moves.run_id,
                          moves.cell.id,
                          {name, unit.text(baseline_ns, false), unit.text(candidate_ns, false), unit.text(moved, true),
                           of_whole && whole != 0 ? fmt::format("{:.0f} %", 100 * moved / whole) : ""}});
  };
  for (const StageMove& stage : moves.stages) {
    const double baseline_ns = unit.rounded(stage.baseline_ns);
    const double candidate_ns = unit.rounded(stage.candidate_ns);
    before += baseline_ns;
    after += candidate_ns;
    add(stage.name, baseline_ns, candidate_ns, true);
  }
  add(moves.step.name, before, after, true);
  for (const StageMove& gap : moves.gaps) {
    add("device idle: " + gap.name, unit.rounded(gap.baseline_ns), unit.rounded(gap.candidate_ns), false);
  }
  table.notes = {
      "The rows above 'the whole step' add up to it. Times are of traced steps: they show where a difference lies, and "
      "the time "
      "ratio above says how large it is."};
  if (!moves.gaps.empty()) {
    table.notes.emplace_back("Device idle: what the device waited for within the same steps; not part of the sum.");
  }
  for (const std::string& warning : moves.warnings) {
    table.notes.push_back(warning + ".");
  }
  return table;
}

}  // namespace

Table comparison_overview_table(const RunComparison& comparison) {
  Table table{
      .title = "Time ratios over all cells",
      .columns = {{"Arm"}, {"Cells", true}, {"Geometric mean", true}, {"Lowest", true}, {"Highest", true}, {"Reading"}},
      .rows = {},
      .notes = {"Geometric mean, lowest and highest of the time ratios of the cells that were compared."}};
  std::vector<std::string> pairs;
  std::map<std::string, std::vector<const ComparedCell*>> rows;
  for (const ComparedCell& row : comparison.rows) {
    const std::string pair =
        row.arm == row.baseline_arm ? row.arm : fmt::format("{} against {}", row.arm, row.baseline_arm);
    if (!rows.contains(pair)) {
      pairs.push_back(pair);
    }
    rows[pair].push_back(&row);
  }
  for (const std::string& pair : pairs) {
    std::vector<double> logs;
    std::map<std::string, std::size_t> readings;
    for (const ComparedCell* row : rows[pair]) {
      ++readings[comparison_reading(*row)];
      if (row->time_ratio) {
        logs.push_back(std::log(*row->time_ratio));
      }
    }
    std::string words;
    for (const auto& [reading, count] : readings) {
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, reading);
    }
    const auto ratio = [](double log) { return format_ratio(std::exp(log)); };
    table.rows.push_back({0,
                          0,
                          {pair, std::to_string(logs.size()), logs.empty() ? "" : ratio(mean(logs)),
                           logs.empty() ? "" : ratio(*std::ranges::min_element(logs)),
                           logs.empty() ? "" : ratio(*std::ranges::max_element(logs)), words}});
  }
  return table;
}

Table comparison_differences_table(const RunComparison& comparison) {
  Table table = environment_table({&comparison.baseline, &comparison.candidate});
  table.title = "Fields that differ";
  table.columns = {{"Field"},
                   {fmt::format("Baseline: {}", run_title(comparison.baseline))},
                   {fmt::format("Candidate: {}", run_title(comparison.candidate))}};
  table.notes.clear();
  const std::set<std::string> own{"Started", "Ended", "UUID"};  // differ in any two runs
  std::vector<std::string> equal;
  std::erase_if(table.rows, [&](const TableRow& row) {
    const bool same = row.fields[1] == row.fields[2];
    if (same) {
      equal.push_back(row.fields[0]);
    }
    return same || (row.fields[0] != "Started" && own.contains(row.fields[0]));
  });
  std::set<std::string> told;
  for (const ComparedCell& row : comparison.rows) {
    const auto before = std::ranges::find(comparison.baseline_arms, row.baseline_arm, &ArmRecord::label);
    const auto after = std::ranges::find(comparison.candidate_arms, row.arm, &ArmRecord::label);
    if (before == comparison.baseline_arms.end() || after == comparison.candidate_arms.end()) {
      continue;
    }
    if (row.arm != row.baseline_arm && told.insert("arm " + row.arm + row.baseline_arm).second) {
      table.rows.push_back({0, 0, {"Arm", row.baseline_arm, row.arm}});
    }
    if (engine_of(*before) != engine_of(*after) && told.insert(row.arm + row.baseline_arm).second) {
      table.rows.push_back({0, 0, {"Engine", engine_of(*before), engine_of(*after)}});
    }
  }
  // Two arms of one run share all fields of the run, and some of these do not hold for a worker: no note.
  if (!equal.empty() && !comparison.is_one_run()) {
    table.notes.push_back(fmt::format("Equal on both sides: {}.", fmt::join(equal, ", ")));
  }
  if (table.rows.empty()) {
    table.notes.insert(table.notes.begin(), "Nothing that is known of the two runs differs.");
  }
  return table;
}

Table comparison_counters_table(const RunComparison& comparison) {
  Table table{.title = "Counters that moved, a step",
              .columns = {{"Counter"}, {"Arm"}, {"Baseline", true}, {"Candidate", true}, {"Cells"}},
              .rows = {},
              .notes = {}};
  std::map<std::tuple<bool, std::string, std::string, std::string, std::string>, std::set<std::string>> moved;
  std::size_t counted = 0;
  for (const ComparedCell& row : comparison.rows) {
    if (row.baseline_counters.empty() || row.counters.empty()) {
      continue;
    }
    ++counted;
    std::set<std::string> names;
    for (const auto& [name, value] : row.baseline_counters) {
      names.insert(name);
    }
    for (const auto& [name, value] : row.counters) {
      names.insert(name);
    }
    for (const std::string& name : names) {
      const auto before = a_step(row.baseline_counters, name);
      const auto after = a_step(row.counters, name);
      if (name == kCountedSteps || !before || !after || count_text(*before) == count_text(*after)) {
        continue;
      }
      moved[{name.starts_with(kOperatorPrefix), name, row.arm, count_text(*before), count_text(*after)}].insert(
          cell_label(row.cell));
    }
  }
  for (const auto& [key, cells] : moved) {
    if (table.rows.size() == kMostCounterRows) {
      table.notes.push_back(
          fmt::format("And {} more rows; -o json has all counters of a run.", moved.size() - kMostCounterRows));
      break;
    }
    const auto& [is_operator, name, arm, before, after] = key;
    table.rows.push_back({0, 0, {name, arm, before, after, places(cells)}});
  }
  table.notes.push_back(counted == 0         ? "No cell has counters on both sides."
                        : table.rows.empty() ? fmt::format("No counter moved in any of {} cells.", counted)
                                             : "Counts are exact: none of them is noise.");
  return table;
}

std::vector<Table> comparison_moves_tables(const RunComparison& comparison) {
  std::vector<Table> tables;
  for (const ComparedCell& row : comparison.rows) {
    if (row.moves) {
      tables.push_back(moves_table(*row.moves));
    }
  }
  return tables;
}

Table comparison_one_sided_table(const RunComparison& comparison) {
  Table table{.title = "Cells and arms that only one side has",
              .columns = {{"Only in"}, {"Arm"}, {"Setting"}, {"Cells"}},
              .rows = {},
              .notes = {}};
  std::map<std::tuple<bool, std::string, std::string>, std::set<std::string>> cells;
  for (const OneSidedRow& row : comparison.one_sided) {
    cells[{!row.in_baseline, row.arm, setting_label(row.cell)}].insert(cell_label(row.cell));
  }
  for (const auto& [key, labels] : cells) {
    const auto& [in_candidate, arm, setting] = key;
    table.rows.push_back(
        {0,
         0,
         {in_candidate ? "the candidate" : "the baseline", arm, setting,
          labels.size() <= kCellsInAField ? places(labels)
                                          : fmt::format("{} cells: {}", labels.size(), places(labels))}});
  }
  return table;
}

}  // namespace decodelab
