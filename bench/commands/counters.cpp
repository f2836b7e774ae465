// `decodelab counters`: compares the exact counters of a run with a file of accepted ones.
#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "base/files.h"
#include "bench/commands/commands.h"
#include "reports/statistics/counter_check.h"
#include "reports/statistics/labels.h"
#include "reports/store/store.h"

namespace decodelab {
namespace {

struct CountersOptions {
  std::string run;
  std::string store = kDefaultStore;
  std::string file;
  bool accept = false;
};

std::string read_accepted(const CountersOptions& options) {
  return read_file("--file", options.file,
                   fmt::format("'decodelab counters RUN --file {} --accept' makes it", options.file));
}

ExitCode check(const CountersOptions& options, const RunSummary& summary) {
  const std::vector<CounterFinding> findings = check_counters(read_accepted(options), summary);
  for (const CounterFinding& finding : findings) {
    const char* const word = finding.outcome == CounterOutcome::invalid      ? "INVALID"
                             : finding.outcome == CounterOutcome::regression ? "REGRESSION"
                                                                             : "improved";
    fmt::print("{:<10}  {}, {}: {}\n", word, cell_label(finding.cell), finding.arm, finding.words);
  }
  if (findings.empty()) {
    fmt::print("every counter is as accepted in {}\n", options.file);
    return ExitCode::ok;
  }
  if (findings.back().outcome == CounterOutcome::improved) {
    fmt::print("'decodelab counters {} --store {} --file {} --accept' accepts what was counted\n", options.run,
               options.store, options.file);
  }
  switch (findings.front().outcome) {
    case CounterOutcome::invalid: return ExitCode::invalid;
    case CounterOutcome::regression: return ExitCode::regression;
    case CounterOutcome::improved: return ExitCode::ok;
  }
  return ExitCode::internal;
}

ExitCode run_counters(const CountersOptions& options) {
  const RunSelector selector = parse_run_selector(options.run, options.store);
  const Store store(selector.store, StoreAccess::read);
  const RunSummary summary = summarize(store.load_run(store.find_run(selector.run)));
  if (options.file.empty()) {
    if (options.accept) {
      throw std::invalid_argument("--accept needs --file, the file that accepted counters stand in");
    }
    std::cout << counter_lines(summary);
    return ExitCode::ok;
  }
  if (!options.accept) {
    return check(options, summary);
  }
  const std::string accepted = std::filesystem::exists(options.file) ? read_accepted(options) : "";
  write_file("--file", options.file, accept_counters(accepted, summary));
  fmt::print("accepted the counters of {} rows in {}\n", summary.rows.size(), options.file);
  return ExitCode::ok;
}

}  // namespace

void add_counters_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<CountersOptions>();
  CLI::App* command =
      app.add_subcommand("counters", "Show a run's exact counters, or hold them against accepted ones.");
  command->add_option("RUN", options->run, "[STORE@](id | name | latest | latest~n)")->required();
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option("--file", options->file,
                      "Accepted counters, one JSON line a row; without it the run's are printed");
  command->add_flag("--accept", options->accept,
                    "Write the run's counters into the file, in the place of their old lines");
  command->footer(
      "Exit codes: 0 as accepted or better; 1 a cost rose or a proof changed; 4 a row without an accepted line.\n\n"
      "Example:\n"
      "  decodelab counters latest --file counters.jsonl --accept\n"
      "  decodelab counters latest --file counters.jsonl");
  command->callback([options, &exit_code] { exit_code = run_counters(*options); });
}

}  // namespace decodelab
