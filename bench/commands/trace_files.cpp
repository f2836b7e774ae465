// `decodelab trace verify|diff|sql|import|explain`: the subcommands that read trace files.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bench/commands/trace.h"
#include "bench/commands/trace_words.h"
#include "profiles/trace/attribution.h"
#include "profiles/trace/capture.h"
#include "profiles/trace/difference.h"
#include "profiles/trace/text.h"
#include "profiles/trace/view.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/write_trace.h"

namespace decodelab {
namespace {

/// One process on one device of a file, with everything that is derived from its rows.
struct ReadTrace {
  TraceView view;
  Trace trace;
  TraceQuality quality;
  Attribution attribution;
};

/// What a command shall show of a file, in the words of the command line.
struct Seen {
  std::vector<std::int64_t> process;
  std::vector<std::int32_t> device;
  std::string step_range;
  std::vector<std::string> windows;

  /// Returns the request for the `place`-th file; a single window is for all files.
  ViewRequest request(std::size_t place) const;
};

constexpr std::int64_t kNsPerMs = 1'000'000;

/// "FROM:TO" in milliseconds.
TimeInterval window_from(const std::string& text) {
  double from_ms = 0;
  double to_ms = 0;
  const char* const end = text.data() + text.size();
  const auto from = std::from_chars(text.data(), end, from_ms);
  bool read = from.ec == std::errc() && from.ptr != end && *from.ptr == ':';
  if (read) {
    const auto to = std::from_chars(from.ptr + 1, end, to_ms);
    read = to.ec == std::errc() && to.ptr == end;
  }
  if (!read || !(from_ms >= 0) || !(to_ms > from_ms) || to_ms > 1e12) {
    throw std::invalid_argument(
        fmt::format("--window: expected FROM:TO in milliseconds from the first row on, as 100:250.5, got '{}'", text));
  }
  const auto ns = [](double ms) { return std::llround(ms * static_cast<double>(kNsPerMs)); };
  return {.start_ns = ns(from_ms), .end_ns = ns(to_ms)};
}

ViewRequest Seen::request(std::size_t place) const {
  ViewRequest request{.process = {}, .device = {}, .step_range = step_range, .window = {}};
  if (!process.empty()) {
    request.process = process.front();
  }
  if (!device.empty()) {
    request.device = device.front();
  }
  if (!windows.empty()) {
    request.window = window_from(windows[std::min(place, windows.size() - 1)]);
  }
  return request;
}

/// Reads a file that the user names: what is wrong with it is a mistake in the command, and one sentence.
TraceEvents read_events(const std::string& path) {
  try {
    return import_trace(path);
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
}

ReadTrace judge(TraceEvents events, const TraceView& view) {
  ReadTrace read{.view = view, .trace = seal(std::move(events)), .quality = {}, .attribution = {}};
  read.quality = verify(read.trace);
  read.attribution = attribute(read.trace, read.quality);
  return read;
}

/// Returns all rows of a file, with an account only where the file has a single view.
ReadTrace read_whole(TraceEvents events) {
  const std::vector<TraceView> views = views_of(events, {});
  if (views.size() == 1) {
    TraceEvents seen = view_events(events, views.front(), {});
    return judge(std::move(seen), views.front());
  }
  mark_edges(events);
  events.steps.clear();
  return judge(std::move(events), {});
}

/// Returns every process and device that was asked for, each with its account.
std::vector<ReadTrace> read(const TraceEvents& events, const ViewRequest& request) {
  std::vector<ReadTrace> traces;
  for (const TraceView& view : views_of(events, request)) {
    traces.push_back(judge(view_events(events, view, request), view));
  }
  return traces;
}

ExitCode code_of(const std::vector<ReadTrace>& traces) {
  const bool all = std::ranges::all_of(traces, [](const ReadTrace& one) { return is_believable(one.quality.verdict); });
  return all ? ExitCode::ok : ExitCode::invalid;
}

/// Prints one account after the other, each with its name where there are several.
template <typename Text>
void print_each(const std::vector<ReadTrace>& traces, Text text) {
  for (const ReadTrace& one : traces) {
    const std::string heading = traces.size() > 1 ? to_string(one.view) + ":" : std::string();
    fmt::print("{}{}", &one == &traces.front() ? "" : "\n", text(one, heading));
  }
}

ExitCode verify_file(const std::string& path, const Seen& seen) {
  const std::vector<ReadTrace> traces = read(read_events(path), seen.request(0));
  print_each(traces,
             [](const ReadTrace& one, const std::string& heading) { return explain_text(one.quality, heading); });
  return code_of(traces);
}

std::string account_text(const ReadTrace& one, const std::string& heading) {
  return trace_text(one.trace, one.quality, one.attribution, heading);
}

ExitCode explain_file(const std::string& path, const Seen& seen) {
  const std::vector<ReadTrace> traces = read(read_events(path), seen.request(0));
  print_each(traces, account_text);
  return code_of(traces);
}

/// Returns the names of the two files: their arms, else their paths or windows.
std::pair<std::string, std::string> names_of(const ReadTrace& a, const ReadTrace& b, const std::string& first,
                                             const std::string& second, const Seen& seen) {
  const auto name = [](const ReadTrace& one, const std::string& path) {
    const std::string& arm = one.trace.events().session.arm;
    return arm.empty() ? path : arm;
  };
  std::pair<std::string, std::string> names{name(a, first), name(b, second)};
  if (names.first == names.second) {
    names = {first, second};
  }
  if (first == second && seen.windows.size() > 1) {
    names = {seen.windows.front() + " ms", seen.windows.back() + " ms"};
  }
  return names;
}

ExitCode compare_files(const std::string& first, const std::string& second, const Seen& seen) {
  const std::vector<ReadTrace> a = read(read_events(first), seen.request(0));
  const std::vector<ReadTrace> b = read(read_events(second), seen.request(1));
  if (a.size() != b.size()) {
    throw std::invalid_argument(
        fmt::format("--device: '{}' has {} accounts and '{}' has {}; choose one of each with --process or --device",
                    first, a.size(), second, b.size()));
  }
  bool comparable = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const TraceDifference moved = difference(a[i].trace, a[i].attribution, b[i].trace, b[i].attribution);
    const auto [a_name, b_name] = names_of(a[i], b[i], first, second, seen);
    const std::string heading = a.size() > 1 ? to_string(b[i].view) + ":" : std::string();
    fmt::print("{}{}", i == 0 ? "" : "\n", difference_text(moved, a_name, b_name, heading));
    comparable = comparable && moved.refusal.empty();
  }
  return comparable ? ExitCode::ok : ExitCode::invalid;
}

/// Converts a file. One of several accounts keeps all its rows, from which each account can be made again.
ExitCode convert_file(const std::string& input, const std::string& output, const Seen& seen) {
  check_trace_path("--out", output);
  const TraceEvents events = read_events(input);
  const std::vector<ReadTrace> traces = read(events, seen.request(0));
  if (traces.size() == 1) {
    write_trace_file(traces.front().trace, traces.front().quality, traces.front().attribution, output);
  } else {
    const ReadTrace all = read_whole(events);
    write_trace_file(all.trace, all.quality, all.attribution, output);
  }
  print_each(traces, account_text);
  fmt::print("{}\n", how_to_open(output));
  return code_of(traces);
}

/// A SQLite file that is removed together with the object.
class TemporaryDatabase final {
 public:
  TemporaryDatabase()
      : path_(std::filesystem::temp_directory_path() / fmt::format("decodelab-trace-{}.sqlite", getpid())) {}
  ~TemporaryDatabase() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryDatabase(const TemporaryDatabase&) = delete;
  TemporaryDatabase& operator=(const TemporaryDatabase&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Prints rows as lines of fields between tabs, under the names of the columns.
void print_rows(const std::string& database, const std::string& question) {
  const SQLite::Database open(database, SQLite::OPEN_READONLY);
  SQLite::Statement statement(open, question);
  for (int column = 0; column < statement.getColumnCount(); ++column) {
    fmt::print("{}{}", column == 0 ? "" : "\t", statement.getColumnName(column));
  }
  fmt::print("\n");
  while (statement.executeStep()) {
    for (int column = 0; column < statement.getColumnCount(); ++column) {
      fmt::print("{}{}", column == 0 ? "" : "\t", statement.getColumn(column).getString());
    }
    fmt::print("\n");
  }
}

bool is_sqlite(const std::string& path) { return path.ends_with(".sqlite"); }

ExitCode ask(const std::string& path, const std::string& question) {
  try {
    if (is_sqlite(path)) {
      if (!std::filesystem::exists(path)) {
        throw std::invalid_argument(fmt::format("there is no file '{}'", path));
      }
      print_rows(path, question);
    } else {
      const TemporaryDatabase database;
      const ReadTrace file = read_whole(read_events(path));
      write_trace(file.trace, file.quality, database.path());
      print_rows(database.path(), question);
    }
  } catch (const SQLite::Exception& error) {
    throw std::invalid_argument(
        fmt::format("SQLite says: {}. 'select name from sqlite_master' lists the tables", error.what()));
  }
  return ExitCode::ok;
}

struct Names {
  std::string first;
  std::string second;
  Seen seen;
};

/// How many windows a command takes: no options of views, one window, or one for each of two files.
enum class Views : std::uint8_t { none, one, two };

void add_view_options(CLI::App& command, Seen& seen, Views views) {
  if (views == Views::none) {
    return;
  }
  command.add_option("--process", seen.process, "Account for this process only")->expected(1);
  command.add_option("--device", seen.device, "Account for this GPU only")->expected(1);
  command.add_option("--step-range", seen.step_range,
                     "A step is each outermost NVTX or record_function range whose name fits this regular expression");
  const bool two = views == Views::two;
  command
      .add_option("--window", seen.windows,
                  two ? "FROM:TO in ms from the first row on; twice: one for A, one for B"
                      : "FROM:TO in ms from the first row on: steps inside of it count")
      ->expected(1, two ? 2 : 1)
      ->allow_extra_args(false);
}

/// Adds a subcommand with one or two arguments.
template <typename Run>
void add(CLI::App& trace, ExitCode& exit_code, const char* name, const char* help, const char* footer,
         const std::vector<std::pair<const char*, const char*>>& arguments, Views views, Run&& run) {
  auto names = std::make_shared<Names>();
  CLI::App* command = trace.add_subcommand(name, help);
  std::string* place = &names->first;
  for (const auto& [argument, words] : arguments) {
    command->add_option(argument, *place, words)->required();
    place = &names->second;
  }
  add_view_options(*command, names->seen, views);
  command->footer(footer);
  command->callback([names, run, &exit_code] { exit_code = run(*names); });
}

}  // namespace

void add_trace_file_commands(CLI::App& trace, ExitCode& exit_code) {
  const std::pair file{"FILE", "A trace of ours, of nsys (exported as SQLite) or of PyTorch's profiler (JSON)"};
  add(trace, exit_code, "verify", "Say whether a trace can be believed, check by check.",
      "Exit codes: 0 it can, perhaps with a warning or in the part that is named; 2 it is no trace; 4 it cannot.\n\n"
      "Example:\n  decodelab trace verify t.sqlite",
      {file}, Views::one, [](const Names& names) { return verify_file(names.first, names.seen); });
  add(trace, exit_code, "explain", "Say where the time of a trace's steps went.",
      "Of a trace made elsewhere each process and GPU has an account. Steps are what --step-range names, else what "
      "the\n"
      "trace marks, else the time between launches of CUDA graphs, else the whole window.\n\n"
      "Example:\n  decodelab trace explain t.sqlite\n"
      "  decodelab trace explain report.sqlite --device 0 --step-range '^forward'",
      {file}, Views::one, [](const Names& names) { return explain_file(names.first, names.seen); });
  add(trace, exit_code, "diff", "Say what moved between two traces, in rows that add up to the difference of a step.",
      "Example:\n  decodelab trace diff t-causal.sqlite t-bigcode.sqlite\n"
      "  decodelab trace diff report.sqlite report.sqlite --device 0 --window 0:100 --window 100:200",
      {{"A", "The trace that is compared with"}, {"B", "The trace that is compared"}}, Views::two,
      [](const Names& names) { return compare_files(names.first, names.second, names.seen); });
  add(trace, exit_code, "sql", "Ask a trace in SQL; any format is read as the tables of a .sqlite trace.",
      "Example:\n  decodelab trace sql t.sqlite 'select name, count(*) from sqlite_master group by 1'",
      {file, {"QUESTION", "One statement that changes nothing"}}, Views::none,
      [](const Names& names) { return ask(names.first, names.second); });
  add(trace, exit_code, "import", "Read a trace made elsewhere, account for it, and write it in another format.",
      "Example:\n  nsys export --type sqlite report.nsys-rep\n"
      "  decodelab trace import report.sqlite --out report.pftrace",
      {file, {"--out", "The file to write, in the format of its ending"}}, Views::one,
      [](const Names& names) { return convert_file(names.first, names.second, names.seen); });
}

}  // namespace decodelab
