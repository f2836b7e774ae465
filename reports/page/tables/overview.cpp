// Sentences, badges and tables at the head and the foot of a page.
#include "reports/page/tables/overview.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/page/tables/answer.h"
#include "reports/statistics/labels.h"
#include "reports/store/flags.h"

namespace decodelab {
namespace {

// Share of a block's core time that other processes may use before it is worth telling
// (design/measurement.md, "Visits, blocks, launches").
constexpr std::size_t kCellsListed = 6;

std::string listed(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > most) {
    text += fmt::format(" and {} more", names.size() - most);
  }
  return text;
}

std::string plural(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string compared_sentence(const RunSummary& summary) {
  std::vector<std::string> others;
  for (const ArmRecord& arm : summary.arms) {
    if (!arm.baseline && !arm.roofline()) {
      others.push_back(arm.label);
    }
  }
  std::set<std::int64_t> cells;
  for (const SummaryRow& row : summary.rows) {
    cells.insert(row.cell.id);
  }
  const std::string baseline = summary.baseline();
  const std::string arms = baseline.empty() ? listed(others, kCellsListed)
                           : others.empty() ? fmt::format("{} alone", baseline)
                                            : fmt::format("{} against {}", listed(others, kCellsListed), baseline);
  return fmt::format("{}: {}, {}.", arms, summary.run.model.name, plural(std::ssize(cells), "cell"));
}

std::string resolution_sentence(const RunSummary& summary) {
  std::vector<double> detectable;
  bool contrasts = false;
  for (const SummaryRow& row : summary.rows) {
    contrasts = contrasts || (row.time_ratio && !row.arm.baseline);
    if (row.mde) {
      detectable.push_back(*row.mde);
    }
  }
  if (!contrasts) {
    return "No arm was compared with a baseline.";
  }
  if (detectable.empty()) {
    return "One launch: the ratios speak for this process only and resolve nothing. Use --launches 5 or more.";
  }
  std::sort(detectable.begin(), detectable.end());
  if (format_detectable(quantile(detectable, 0.5)) == "none") {
    return fmt::format(
        "Resolves nothing below a tenfold effect in the median contrast with {} launches: use --launches 5 or more.",
        summary.run.launches);
  }
  return fmt::format("Resolves >= {} at 80 % power in the median contrast ({} at best, {} at worst), with {} of {}.",
                     format_detectable(quantile(detectable, 0.5)), format_detectable(detectable.front()),
                     format_detectable(detectable.back()),
                     summary.run.launches == 1 ? "1 launch" : fmt::format("{} launches", summary.run.launches),
                     plural(summary.run.blocks_per_launch, "block"));
}

std::string null_badge(const RunSummary& summary) {
  std::int64_t intervals = 0;
  std::int64_t spanning = 0;
  for (const SummaryRow& row : summary.rows) {
    if (!row.comparison.in_run_null) {
      continue;
    }
    ++intervals;
    spanning += row.comparison.in_run_null->low <= 0 && row.comparison.in_run_null->high >= 0;
  }
  return intervals == 0 ? "" : fmt::format("in-run null spans 0 in {} of {}", spanning, intervals);
}

std::string engagement_badge(const RunSummary& summary) {
  std::int64_t known = 0;
  std::int64_t engaged = 0;
  for (const SummaryRow& row : summary.rows) {
    if (!row.engaged) {
      continue;
    }
    ++known;
    engaged += *row.engaged;
  }
  return known == 0 ? "engagement not checked" : fmt::format("engaged in {} of {} rows", engaged, known);
}

std::vector<std::pair<std::string, std::string>> environment_fields(const RunRecord& run) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  return {{"Started", format_date(run.started_unix_ns)},
          {"Ended", run.ended_unix_ns == 0 ? "not finished" : format_date(run.ended_unix_ns)},
          {"Model",
           fmt::format("{} ({}, {} parameters, {} positions{})", run.model.name, run.model.family, run.model.parameters,
                       run.model.positions, run.model.random_weights ? ", random weights" : "")},
          {"Processor", run.machine.cpu},
          {"Cores", std::to_string(run.machine.cores)},
          {"Memory", format_bytes(run.machine.memory_bytes)},
          {"Vector extensions", or_dash(run.machine.isa)},
          {"Accelerator", or_dash(run.machine.accelerator)},
          {"System", or_dash(run.machine.os)},
          {"Commit", or_dash(run.build.commit)},
          {"Compiler", or_dash(run.build.compiler)},
          {"Build type", or_dash(run.build.build_type)},
          {"libtorch", or_dash(run.build.libtorch)},
          {"CUDA", or_dash(run.build.cuda)},
          {"Launches x blocks", fmt::format("{} x {}", run.launches, run.blocks_per_launch)},
          {"Seed", std::to_string(run.seed)},
          {"UUID", run.uuid}};
}

}  // namespace

std::string run_title(const RunRecord& run) {
  return run.name.empty() ? fmt::format("run {}", run.id) : fmt::format("{} (run {})", run.name, run.id);
}

Overview overview_of(const RunData& data, const RunSummary& summary) {
  Overview overview{.answer = answer_of(summary),
                    .compared = compared_sentence(summary),
                    .resolution = resolution_sentence(summary),
                    .badges = {}};
  const auto ok = std::count_if(summary.rows.begin(), summary.rows.end(),
                                [](const SummaryRow& row) { return row.status == RowStatus::ok; });
  const auto busy = std::count_if(data.blocks.begin(), data.blocks.end(),
                                  [](const BlockRecord& block) { return block.other_cpu_share > kVoidShare; });
  const auto restless = std::count_if(summary.rows.begin(), summary.rows.end(), [](const SummaryRow& row) {
    return std::find(row.flags.begin(), row.flags.end(), kWarmUpNotQuietFlag) != row.flags.end();
  });
  const auto not_run = std::count_if(summary.rows.begin(), summary.rows.end(), [](const SummaryRow& row) {
    return row.status == RowStatus::planned && row.blocks == 0;
  });
  overview.badges = {fmt::format("{} of {} rows ok", ok, summary.rows.size()),
                     not_run == 0 ? "" : fmt::format("{} rows not run", not_run),
                     plural(std::ssize(data.blocks), "block"),
                     null_badge(summary),
                     engagement_badge(summary),
                     fmt::format("other processes above 2 % in {} of {} blocks", busy, data.blocks.size()),
                     restless == 0 ? "" : fmt::format("warm-up never quiet in {} rows", restless),
                     data.run.model.random_weights ? "random weights, timing only" : "",
                     data.run.quick ? "quick run" : "",
                     data.run.ended_unix_ns == 0 ? "not finished" : ""};
  std::erase(overview.badges, "");
  return overview;
}

Table overview_table(const RunSummary& summary) {
  Table table{
      .title = "Geometric mean of the time ratios",
      .columns = {{"Arm"}, {"Phase"}, {"Cells", true}, {"Geometric mean", true}, {"Lowest", true}, {"Highest", true}},
      .rows = {},
      .notes = {}};
  // Only cells in which every arm has a ratio: means over different cells are not comparable.
  const auto arms = static_cast<std::size_t>(
      std::ranges::count_if(summary.arms, [](const ArmRecord& arm) { return !arm.roofline(); }));
  std::map<std::int64_t, std::size_t> ratios_of_cell;
  for (const SummaryRow& row : summary.rows) {
    ratios_of_cell[row.cell.id] += row.time_ratio.has_value();
  }
  std::map<std::pair<std::string, Phase>, std::vector<double>> logs;  // by arm and phase
  std::vector<std::string> excluded;
  for (const SummaryRow& row : summary.rows) {
    if (row.arm.roofline()) {
      continue;
    }
    const bool complete = ratios_of_cell[row.cell.id] == arms;
    if (complete && !row.arm.baseline) {
      logs[{row.arm.label, row.cell.phase}].push_back(std::log(*row.time_ratio));
    }
    const std::string label = cell_label(row.cell);
    if (!complete && (excluded.empty() || excluded.back() != label)) {
      excluded.push_back(label);
    }
  }
  std::set<Phase> phases;
  for (const auto& [key, values] : logs) {
    phases.insert(key.second);
  }
  for (const ArmRecord& arm : summary.arms) {
    for (const Phase phase : phases) {
      const auto found = logs.find({arm.label, phase});
      if (found == logs.end()) {
        continue;
      }
      const auto [low, high] = std::minmax_element(found->second.begin(), found->second.end());
      table.rows.push_back(
          {0,
           0,
           {arm.label, to_string(phase), std::to_string(found->second.size()),
            format_ratio(std::exp(mean(found->second))), format_ratio(std::exp(*low)), format_ratio(std::exp(*high))}});
    }
  }
  if (!excluded.empty()) {
    table.notes.push_back(
        fmt::format("Left out, since not every arm has a ratio there: {}.", listed(excluded, kCellsListed)));
  }
  return table;
}

Table environment_table(const std::vector<const RunRecord*>& runs) {
  Table table{.title = "Machine, build and model", .columns = {{"Field"}}, .rows = {}, .notes = {}};
  std::vector<std::string> differing;
  for (const RunRecord* run : runs) {
    table.columns.push_back({run_title(*run)});
    const auto fields = environment_fields(*run);
    table.rows.resize(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (table.rows[i].fields.empty()) {
        table.rows[i].fields.push_back(fields[i].first);
      }
      table.rows[i].fields.push_back(fields[i].second);
    }
  }
  const std::set<std::string> own{"Started", "Ended", "UUID"};  // differ in any two runs
  for (const TableRow& row : table.rows) {
    const bool equal = std::all_of(row.fields.begin() + 1, row.fields.end(),
                                   [&](const std::string& field) { return field == row.fields[1]; });
    if (!equal && !own.contains(row.fields[0])) {
      differing.push_back(row.fields[0]);
    }
  }
  if (!differing.empty()) {
    table.notes.push_back(fmt::format("The runs differ in: {}.", listed(differing, differing.size())));
  }
  return table;
}

Table one_sided_table(const std::vector<const RunSummary*>& runs) {
  Table table{.title = "Rows that not every run has",
              .columns = {{"Cell"}, {"Setting"}, {"Arm"}, {"Only in"}},
              .rows = {},
              .notes = {}};
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> where;
  for (const RunSummary* run : runs) {
    for (const SummaryRow& row : run->rows) {
      where[{cell_label(row.cell), setting_label(row.cell), row.arm.label}].push_back(run_title(run->run));
    }
  }
  for (const auto& [key, titles] : where) {
    if (titles.size() == runs.size()) {
      continue;
    }
    table.rows.push_back({0, 0, {std::get<0>(key), std::get<1>(key), std::get<2>(key), listed(titles, titles.size())}});
  }
  return table;
}

}  // namespace decodelab
