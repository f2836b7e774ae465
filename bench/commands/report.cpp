// `decodelab report`: tables, figures and one offline page from the store.
#include "reports/page/report.h"
#include "bench/commands/commands.h"
#include "reports/store/store.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

namespace decodelab {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string out;
  std::string store = kDefaultStore;
};

ExitCode run(const Options& options) {
  std::vector<RunData> runs;
  for (const std::string& text : options.runs) {
    const RunSelector selector = parse_run_selector(text, options.store);
    if (!selector.arm.empty()) {
      throw std::invalid_argument(fmt::format("'{}': a report is of whole runs; leave ':{}' away", text, selector.arm));
    }
    const Store store(selector.store, StoreAccess::read);
    runs.push_back(store.load_run(store.find_run(selector.run)));
  }
  write_report(runs, options.out, std::cerr);
  fmt::print("{}\n", (std::filesystem::path(options.out) / "report.html").string());
  return ExitCode::ok;
}

}  // namespace

void add_report_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("report", "Write tables, latency curves and one offline HTML page for runs of the store.");
  command->add_option("RUN", options->runs, "[STORE@](id | name | latest | latest~n)")->required();
  command->add_option("--out", options->out, "The folder that is written")->required();
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->footer("Example:\n  decodelab report latest --out my-report");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace decodelab
