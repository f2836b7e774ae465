// `decodelab store`: merge stores, export runs for other tools, remove runs.
#include "reports/store/store.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "base/units.h"
#include "bench/commands/commands.h"
#include "reports/page/exports/json.h"
#include "reports/page/exports/trace_data.h"
#include "reports/page/history/google_benchmark.h"
#include "reports/statistics/summary.h"
#include "reports/store/gc.h"
#include "reports/store/merge.h"

namespace decodelab {
namespace {

// ---- merge --------------------------------------------------------------------------------------------------------

struct MergeOptions {
  std::string target;
  std::vector<std::string> sources;
};

ExitCode merge(const MergeOptions& options) {
  const MergeReport report = merge_stores(options.target, {options.sources.begin(), options.sources.end()});
  for (const std::string& notice : report.notices) {
    std::cerr << "decodelab: " << notice << '\n';
  }
  fmt::print("{}: {} runs added, {} completed, {} unchanged, {} blocks added\n", options.target, report.added,
             report.united, report.unchanged, report.blocks);
  return ExitCode::ok;
}

void add_merge_command(CLI::App& store, ExitCode& exit_code) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = store.add_subcommand("merge", "Add the runs of other stores; shards of one plan become one run.");
  command->add_option("TARGET", options->target, "The store that is written; made where it is not there")->required();
  command->add_option("SOURCE", options->sources, "Stores that are read; none: only unite the shards in TARGET");
  command->footer(
      "A run that TARGET has already is completed, and merging again changes nothing. Two stores that contradict each\n"
      "other are refused, and TARGET stays as it was. Shards that were measured on different machines stay apart.\n\n"
      "Example:\n"
      "  decodelab store merge all.sqlite shard-1.sqlite shard-2.sqlite");
  command->callback([options, &exit_code] { exit_code = merge(*options); });
}

// ---- export -------------------------------------------------------------------------------------------------------

struct ExportOptions {
  std::vector<std::string> runs;
  std::string store = kDefaultStore;
  std::string format = "csv";
  std::string out;
};

/// One form of a run; `first` is true for the first of several runs.
struct ExportFormat {
  const char* name;
  std::string (*write)(const RunData& data, const std::string& arm, bool first);
};

RunSummary summary_of(const RunData& data, const std::string& arm) {
  RunSummary summary = summarize(data);
  if (arm.empty()) {
    return summary;
  }
  std::erase_if(summary.rows, [&](const SummaryRow& row) { return row.arm.label != arm; });
  if (summary.rows.empty()) {
    throw std::invalid_argument(fmt::format("run {} has no arm '{}'", data.run.id, arm));
  }
  return summary;
}

std::string csv(const RunData& data, const std::string& arm, bool first) {
  const std::string text = to_csv(summary_of(data, arm));
  return first ? text : text.substr(text.find('\n') + 1);
}

std::string jsonl(const RunData& data, const std::string& arm, bool) { return to_jsonl(summary_of(data, arm)); }

std::string google_benchmark(const RunData& data, const std::string& arm, bool first) {
  if (!first) {
    throw std::invalid_argument(
        "-o google-benchmark takes one RUN: two in one file would look like repetitions of one; export each to a file");
  }
  return to_google_benchmark(data, arm);
}

void require_arm(const RunData& data, const std::string& arm) {
  if (arm.empty() || std::ranges::find(data.arms, arm, &ArmRecord::label) != data.arms.end()) {
    return;
  }
  throw std::invalid_argument(fmt::format("run {} has no arm '{}'", data.run.id, arm));
}

std::string traces_csv(const RunData& data, const std::string& arm, bool first) {
  require_arm(data, arm);
  const std::string text = traces_to_csv(data, arm);
  return first ? text : text.substr(text.find('\n') + 1);
}

std::string traces_jsonl(const RunData& data, const std::string& arm, bool) {
  require_arm(data, arm);
  return traces_to_jsonl(data, arm);
}

constexpr ExportFormat kExportFormats[] = {{"csv", csv},
                                           {"jsonl", jsonl},
                                           {"google-benchmark", google_benchmark},
                                           {"traces-csv", traces_csv},
                                           {"traces-jsonl", traces_jsonl}};

const ExportFormat& export_format(const std::string& name) {
  const auto* found = std::ranges::find(kExportFormats, name, [](const ExportFormat& format) { return format.name; });
  if (found != std::end(kExportFormats)) {
    return *found;
  }
  std::vector<std::string> known;
  for (const ExportFormat& format : kExportFormats) {
    known.emplace_back(format.name);
  }
  throw std::invalid_argument(fmt::format("-o '{}': expected one of {}", name, fmt::join(known, ", ")));
}

ExitCode export_runs(const ExportOptions& options) {
  const ExportFormat& format = export_format(options.format);
  std::string text;
  for (const std::string& run : options.runs) {
    const RunSelector selector = parse_run_selector(run, options.store);
    const Store store(selector.store, StoreAccess::read);
    text += format.write(store.load_run(store.find_run(selector.run)), selector.arm, &run == options.runs.data());
  }
  if (options.out.empty()) {
    std::cout << text << std::flush;
    return ExitCode::ok;
  }
  write_file("--out", options.out, text);
  return ExitCode::ok;
}

void add_export_command(CLI::App& store, ExitCode& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = store.add_subcommand("export", "Print runs in a form that other tools read.");
  command->add_option("RUN", options->runs, "[STORE@](id | name | latest | latest~n)[:ARM]")->required();
  command
      ->add_option("-o,--output,--format", options->format, "csv, jsonl, google-benchmark, traces-csv or traces-jsonl")
      ->capture_default_str();
  command->add_option("--out", options->out, "The file that is written, instead of standard output");
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->footer(
      "csv and jsonl have a row for each cell and arm; google-benchmark has an entry for each visit, as its\n"
      "tools (compare.py) read them; traces-jsonl has a line for each trace, traces-csv a row for each of its stages\n"
      "and gaps. RUN:ARM exports one arm; google-benchmark then leaves its label out of the names, so that two arms\n"
      "can be compared by name.\n\n"
      "Example:\n"
      "  decodelab store export first -o csv --out rows.csv\n"
      "  decodelab store export first:causal -o google-benchmark --out causal.json");
  command->callback([options, &exit_code] { exit_code = export_runs(*options); });
}

// ---- gc -----------------------------------------------------------------------------------------------------------

struct GcOptions {
  std::string store = kDefaultStore;
  GcRequest request;
};

ExitCode gc(const GcOptions& options) {
  if (!options.request.keep && options.request.runs.empty()) {
    throw std::invalid_argument("store gc: which runs? --keep N removes all but the newest N, --run RUN that one");
  }
  const GcReport report = collect_garbage(options.store, options.request);
  const char* verb = options.request.dry_run ? "would remove" : "removed";
  for (const GcReport::Removed& removed : report.removed) {
    const RunRecord& run = removed.run;
    fmt::print("{} run {}{}{}, {}, {} blocks, {} of samples{}\n", verb, run.id, run.name.empty() ? "" : " ", run.name,
               format_date(run.started_unix_ns), removed.blocks, format_bytes(removed.sample_bytes),
               run.ended_unix_ns == 0 ? ", not finished" : "");
  }
  const std::string after = options.request.dry_run
                                ? ""
                                : fmt::format(", now {}", format_bytes(static_cast<std::int64_t>(report.bytes_after)));
  fmt::print("{} {} runs, kept {}; {} had {}{}\n", verb, report.removed.size(), report.kept, options.store,
             format_bytes(static_cast<std::int64_t>(report.bytes_before)), after);
  if (options.request.keep && report.unfinished_kept > 0) {
    std::cerr << fmt::format(
        "decodelab: {} of the kept runs are not finished; --keep leaves them, --run removes them\n",
        report.unfinished_kept);
  }
  if (!report.not_vacuumed.empty()) {
    std::cerr << fmt::format("decodelab: the runs are removed, but the file could not be made smaller: {}\n",
                             report.not_vacuumed);
  }
  return ExitCode::ok;
}

void add_gc_command(CLI::App& store, ExitCode& exit_code) {
  auto options = std::make_shared<GcOptions>();
  CLI::App* command = store.add_subcommand("gc", "Remove runs, and give their room back to the disk.");
  command->add_option("--store", options->store, "The SQLite file that holds the runs")->capture_default_str();
  command->add_option("--keep", options->request.keep, "Remove all finished runs but this many of the newest");
  command->add_option("--run", options->request.runs, "Remove this run (id, name, latest, latest~n); may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", options->request.dry_run, "Only say what would be removed");
  command->footer("Example:\n  decodelab store gc --keep 20 --dry-run");
  command->callback([options, &exit_code] { exit_code = gc(*options); });
}

}  // namespace

void add_store_command(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("store", "Merge stores, export runs for other tools, remove runs.");
  command->require_subcommand(1);
  command->footer("'decodelab store merge --help' explains one.\n\nExample:\n  decodelab store export latest -o csv");
  add_merge_command(*command, exit_code);
  add_export_command(*command, exit_code);
  add_gc_command(*command, exit_code);
}

}  // namespace decodelab
