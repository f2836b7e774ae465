// `decodelab compare`: two arms of one run, or two or more runs, cell by cell.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/commands/commands.h"
#include "bench/commands/output.h"
#include "reports/page/comparison/comparison_page.h"
#include "reports/page/comparison/comparison_report.h"
#include "reports/page/tables/answer.h"
#include "reports/statistics/run_comparison.h"
#include "reports/store/store.h"

namespace decodelab {
namespace {

struct CompareOptions {
  std::string baseline;
  std::vector<std::string> candidates;
  std::string out;
  std::string store = kDefaultStore;
  std::string output = "text";
  std::string fail_on;
  bool verbose = false;
};

constexpr const char* kNever = "";
constexpr const char* kSlower = "slower";
constexpr const char* kDifferent = "different";

RunData load(const RunSelector& selector) {
  const Store store(selector.store, StoreAccess::read);
  return store.load_run(store.find_run(selector.run));
}

/// Whether any cell's interval lies on the side that `--fail-on` names.
bool fails(const std::vector<ComparedCell>& rows, const std::string& fail_on) {
  return std::ranges::any_of(rows, [&](const ComparedCell& row) {
    const bool slower = row.interval && row.interval->low > 1;
    const bool faster = row.interval && row.interval->high < 1;
    return fail_on == kSlower ? slower : fail_on == kDifferent && (slower || faster);
  });
}

std::vector<Table> tables_of(const RunComparison& comparison) {
  std::vector<Table> tables{comparison_page_table(comparison)};
  for (Table& table : comparison_moves_tables(comparison)) {
    tables.push_back(std::move(table));
  }
  if (Table table = comparison_one_sided_table(comparison); !table.rows.empty()) {
    tables.push_back(std::move(table));
  }
  return tables;
}

void print(const RunComparison& comparison, OutputFormat format, bool verbose) {
  switch (format) {
    case OutputFormat::text:
      std::cout << answer_lines(answer_of(comparison.rows, comparison.is_one_run()));
      for (const Table& table : tables_of(comparison)) {
        std::cout << to_text(with_few_notes(table, verbose)) << '\n';
      }
      return;
    case OutputFormat::markdown: std::cout << comparison_markdown({&comparison, 1}); return;
    case OutputFormat::json: std::cout << comparison_to_json(comparison); return;
    case OutputFormat::jsonl: std::cout << comparison_to_jsonl(comparison); return;
    case OutputFormat::csv: std::cout << comparison_to_csv(comparison); return;
  }
}

ExitCode run_compare(const CompareOptions& options) {
  const OutputFormat format = output_format(options.output);
  if (options.fail_on != kNever && options.fail_on != kSlower && options.fail_on != kDifferent) {
    throw std::invalid_argument(fmt::format("--fail-on '{}': expected slower or different", options.fail_on));
  }
  const RunSelector first = parse_run_selector(options.baseline, options.store);
  const RunData baseline = load(first);
  std::vector<RunComparison> comparisons;
  for (const std::string& text : options.candidates) {
    const RunSelector second = parse_run_selector(text, options.store);
    const RunData candidate = load(second);
    comparisons.push_back(
        make_comparison({.data = &baseline, .arm = first.arm}, {.data = &candidate, .arm = second.arm}));
  }
  if (options.out.empty()) {
    for (const RunComparison& comparison : comparisons) {
      print(comparison, format, options.verbose);
    }
  } else {
    write_comparison(comparisons, options.out, std::cerr);
    fmt::print("{}\n", (std::filesystem::path(options.out) / "compare.html").string());
  }
  const bool failed = std::ranges::any_of(
      comparisons, [&](const RunComparison& comparison) { return fails(comparison.rows, options.fail_on); });
  return failed ? ExitCode::regression : ExitCode::ok;
}

}  // namespace

void add_compare_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      app.add_subcommand("compare", "Compare two arms of one run, or runs with each other, cell by cell.");
  command->add_option("BASELINE", options->baseline, "[STORE@]RUN[:ARM], RUN being an id, a name, latest or latest~n")
      ->required();
  command
      ->add_option("CANDIDATE", options->candidates,
                   "The same; of another run, or another arm of the same run; several are compared one by one")
      ->required();
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option("-o,--output", options->output, "text, md, csv, json or jsonl")->capture_default_str();
  command->add_option("--out", options->out,
                      "Write compare.html, compare.md and compare.json into this folder instead of printing");
  command->add_flag("--verbose", options->verbose, "Print every note below the tables");
  command->add_option("--fail-on", options->fail_on,
                      "slower or different: exit 1 where the 95 % interval of a cell lies beyond 1");
  command->footer(
      "Arms of one run are compared in the blocks that they share. Two runs share none: what the machine did between "
      "them\n"
      "is in their ratio, and there is no verdict. Where both sides have a trace, it is told which stages moved.\n\n"
      "Example:\n"
      "  decodelab compare first:causal first:bigcode\n"
      "  decodelab compare latest~1 latest --fail-on slower\n"
      "  decodelab compare old.sqlite@nightly new.sqlite@nightly --out comparison");
  command->callback([options, &exit_code] { exit_code = run_compare(*options); });
}

}  // namespace decodelab
