// Prints a run's rows: the tables that people read, or the data that programs do.
#include "bench/commands/output.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/text.h"
#include "reports/page/exports/json.h"
#include "reports/page/tables/answer.h"
#include "reports/page/tables/batching_table.h"
#include "reports/page/tables/quality_table.h"
#include "reports/page/tables/result_tables.h"
#include "reports/statistics/summary.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostNoteLines = 3;  // below a table in a terminal

}  // namespace

OutputFormat output_format(const std::string& name) {
  static const std::map<std::string, OutputFormat> formats{{"text", OutputFormat::text},
                                                           {"md", OutputFormat::markdown},
                                                           {"csv", OutputFormat::csv},
                                                           {"json", OutputFormat::json},
                                                           {"jsonl", OutputFormat::jsonl}};
  const auto found = formats.find(name);
  if (found == formats.end()) {
    throw std::invalid_argument(fmt::format("-o '{}': expected text, md, csv, json or jsonl", name));
  }
  return found->second;
}

Table with_few_notes(Table table, bool verbose) {
  if (verbose) {
    return table;
  }
  std::size_t lines = 0;
  std::size_t kept = 0;
  for (const std::string& note : table.notes) {
    const std::string wrapped = wrap(note, kTableWidth);
    lines += 1 + static_cast<std::size_t>(std::ranges::count(wrapped, '\n'));
    if (lines > kMostNoteLines) {
      break;
    }
    ++kept;
  }
  if (const std::size_t more = table.notes.size() - kept; more > 0) {
    table.notes.resize(kept);
    table.notes.push_back(
        fmt::format("{} more note{}: --verbose prints {}.", more, more == 1 ? "" : "s", more == 1 ? "it" : "them"));
  }
  return table;
}

std::string answer_lines(const std::string& answer) { return wrap(answer, kTableWidth) + "\n\n"; }

void print_run(const RunData& data, OutputFormat format, std::ostream& out, const std::string& store, bool verbose) {
  const RunSummary summary = summarize(data);
  switch (format) {
    case OutputFormat::csv: out << to_csv(summary); return;
    case OutputFormat::json: out << to_json(summary) << '\n'; return;
    case OutputFormat::jsonl: out << to_jsonl(summary); return;
    case OutputFormat::text:
    case OutputFormat::markdown: break;
  }
  std::vector<Table> tables = comparison_tables(summary);
  for (Table table :
       {batching_table(summary), composite_table(summary), effect_table(summary), quality_table(summary)}) {
    if (!table.rows.empty()) {
      tables.push_back(std::move(table));
    }
  }
  if (verbose || format == OutputFormat::markdown) {
    for (Table& table : latency_tables(summary)) {
      tables.push_back(std::move(table));
    }
  }
  const std::string answer = answer_of(summary, store);
  out << answer_lines(format == OutputFormat::markdown ? escape_markdown(answer) : answer);
  for (const Table& table : tables) {
    out << (format == OutputFormat::markdown ? to_markdown(table) : to_text(with_few_notes(table, verbose))) << '\n';
  }
}

}  // namespace decodelab
