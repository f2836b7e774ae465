// Prints a run's rows: the tables that people read, or the data that programs do.
#include "bench/commands/output.h"

#include "reports/page/exports/json.h"
#include "reports/page/tables/result_tables.h"
#include "reports/statistics/summary.h"

#include <fmt/format.h>

#include <map>
#include <ostream>
#include <stdexcept>
#include <vector>

namespace decodelab {

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

void print_run(const RunData& data, OutputFormat format, std::ostream& out) {
  const RunSummary summary = summarize(data);
  switch (format) {
    case OutputFormat::csv: out << to_csv(summary); return;
    case OutputFormat::json: out << to_json(summary) << '\n'; return;
    case OutputFormat::jsonl: out << to_jsonl(summary); return;
    case OutputFormat::text:
    case OutputFormat::markdown: break;
  }
  std::vector<Table> tables = latency_tables(summary);
  for (Table& table : comparison_tables(summary)) {
    tables.push_back(std::move(table));
  }
  for (Table table : {composite_table(summary), effect_table(summary)}) {
    if (!table.rows.empty()) {
      tables.push_back(std::move(table));
    }
  }
  for (const Table& table : tables) {
    out << (format == OutputFormat::markdown ? to_markdown(table) : to_text(table)) << '\n';
  }
}

}  // namespace decodelab
