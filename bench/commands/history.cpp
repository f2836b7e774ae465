// `decodelab history`: the value of a metric over the commits of a store, and where it made a step.
#include <filesystem>
#include <iostream>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/commands/commands.h"
#include "bench/commands/output.h"
#include "reports/page/history/history_page.h"
#include "reports/store/store.h"

namespace decodelab {
namespace {

struct HistoryOptions {
  HistoryRequest request;
  std::string store = kDefaultStore;
  std::string output = "text";
  std::string out;
};

void print(const std::vector<HistorySeries>& series, const std::string& metric, OutputFormat format) {
  const auto text = [&](const Table& table) {
    std::cout << (format == OutputFormat::markdown ? to_markdown(table) : to_text(table)) << '\n';
  };
  switch (format) {
    case OutputFormat::csv: std::cout << history_to_csv(series, metric); return;
    case OutputFormat::json: std::cout << history_to_json(series, metric); return;
    case OutputFormat::jsonl: throw std::invalid_argument("-o jsonl: history knows text, md, csv and json");
    case OutputFormat::text:
    case OutputFormat::markdown: break;
  }
  text(history_overview_table(series, metric));
  // Every point of many series would hide the overview; --out writes them all.
  if (series.size() == 1) {
    text(history_table(series.front(), metric));
  }
}

ExitCode run_history(const HistoryOptions& options) {
  const OutputFormat format = output_format(options.output);
  const Store store(options.store, StoreAccess::read);
  std::vector<RunData> runs;
  for (const RunRecord& record : store.list_runs()) {
    runs.push_back(store.load_run(record.id));
  }
  const std::vector<HistorySeries> series = history_of(runs, options.request);
  if (options.out.empty()) {
    print(series, options.request.metric, format);
  } else {
    write_history(series, options.request.metric, options.out, std::cerr);
    fmt::print("{}\n", (std::filesystem::path(options.out) / "history.html").string());
  }
  return ExitCode::ok;
}

}  // namespace

void add_history_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command =
      app.add_subcommand("history", "Follow a metric over the commits of a store, and find where it made a step.");
  command
      ->add_option("METRIC", options->request.metric,
                   fmt::format("One of {}; or counters.NAME, of a step", fmt::join(history_metrics(), ", ")))
      ->required();
  command->add_option("--arm", options->request.arm,
                      "An arm; without it the baseline of each run, and for ratios every other arm");
  command->add_option("--cell", options->request.cell, "A cell as tables name it: 'b4 pp512', 'b1 tg @ d64'");
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option("-o,--output", options->output, "text, md, csv or json")->capture_default_str();
  command->add_option("--out", options->out,
                      "Write history.html, history.md, history.json and history.csv into this folder instead");
  command->footer(
      "A step: two points or more in a row, three block deviations or more from the level before them. Finished runs\n"
      "in the order in which they were measured; a series never mixes machines, models, types, devices or threads.\n\n"
      "Example:\n"
      "  decodelab history mean_ns --arm bigcode --cell 'b1 tg @ d64'\n"
      "  decodelab history counters.operators --store nightly.sqlite --out history");
  command->callback([options, &exit_code] { exit_code = run_history(*options); });
}

}  // namespace decodelab
