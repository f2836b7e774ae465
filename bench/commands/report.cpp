// `decodelab report`: tables, figures and one offline page from the store.
#include "reports/page/report.h"

#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "bench/commands/commands.h"
#include "bench/commands/output.h"
#include "reports/page/tables/tgi_table.h"
#include "reports/statistics/rebase.h"
#include "reports/statistics/summary.h"
#include "reports/store/store.h"

namespace decodelab {
namespace {

constexpr const char* kTgi = "tgi";

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;
  std::string store = kDefaultStore;
  std::string baseline;
  std::string formats = report_format_names();
  std::string table;
  std::string output = "text";
  bool smooth = false;
};

void print_tables(const std::vector<RunData>& runs, OutputFormat format) {
  for (const RunData& data : runs) {
    for (const Table& table : tgi_tables(summarize(data))) {
      std::cout << (format == OutputFormat::markdown ? to_markdown(table) : to_text(table)) << '\n';
    }
  }
}

ExitCode run_report(const ReportOptions& options) {
  const std::set<ReportFormat> formats = parse_report_formats(options.formats);
  const OutputFormat printed = output_format(options.output);
  if (!options.table.empty() && options.table != kTgi) {
    throw std::invalid_argument(fmt::format("--table '{}': expected {}", options.table, kTgi));
  }
  if (printed != OutputFormat::text && printed != OutputFormat::markdown) {
    throw std::invalid_argument(fmt::format(
        "-o '{}': --table is printed as text or md; report --format {} writes files", options.output, options.output));
  }
  if (options.out.empty() && options.table.empty()) {
    throw std::invalid_argument("report: --out DIR names the folder that is written; --table tgi prints instead");
  }
  std::vector<RunData> runs;
  for (const std::string& text : options.runs) {
    const RunSelector selector = parse_run_selector(text, options.store);
    if (!selector.arm.empty()) {
      throw std::invalid_argument(fmt::format("'{}': a report is of whole runs; leave ':{}' away", text, selector.arm));
    }
    const Store store(selector.store, StoreAccess::read);
    runs.push_back(store.load_run(store.find_run(selector.run)));
    if (!options.baseline.empty()) {
      runs.back() = with_baseline(std::move(runs.back()), options.baseline);
    }
  }
  if (!options.table.empty()) {
    print_tables(runs, printed);
  }
  if (options.out.empty()) {
    return ExitCode::ok;
  }
  write_report(runs, options.out, std::cerr, formats, options.smooth);
  const bool page = formats.contains(ReportFormat::html);
  fmt::print("{}\n", (std::filesystem::path(options.out) / (page ? "report.html" : "")).string());
  return ExitCode::ok;
}

}  // namespace

void add_report_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "Write tables, latency curves and one offline HTML page for runs of the store.");
  command->add_option("RUN", options->runs, "[STORE@](id | name | latest | latest~n)")->required();
  command->add_option("--out", options->out, "The folder that is written");
  command->add_option("--format", options->formats, "What is written there, some of " + report_format_names());
  command->add_option("--baseline", options->baseline,
                      "Express all ratios relative to this arm instead of the one that the sweep named");
  command->add_flag("--smooth", options->smooth, "Add a smoothed line to latency curves, behind the points");
  command->add_option("--table", options->table,
                      "Print a table instead: tgi, latency and throughput as text-generation-benchmark prints them");
  command->add_option("-o,--output", options->output, "How --table prints: text or md")->capture_default_str();
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->footer(
      "report.html needs no network and no JavaScript. csv: a row for each cell and arm, one for each visit, and one\n"
      "for each stage of each trace. Verdicts against another --baseline are made anew, from the same blocks.\n\n"
      "Example:\n"
      "  decodelab report latest --out my-report\n"
      "  decodelab report latest --baseline bigcode --format html,md --out against-bigcode\n"
      "  decodelab report latest --table tgi -o md");
  command->callback([options, &exit_code] { exit_code = run_report(*options); });
}

}  // namespace decodelab
