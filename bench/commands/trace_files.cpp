// `decodelab trace verify|diff|sql|import|explain`: what can be asked of a trace that is a file.
#include "bench/commands/trace.h"
#include "bench/commands/trace_words.h"
#include "profiles/trace/attribution.h"
#include "profiles/trace/difference.h"
#include "profiles/trace/text.h"
#include "profiles/write/import_trace.h"
#include "profiles/write/write_trace.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace decodelab {
namespace {

/// A file with everything that is derived from its rows.
struct ReadTrace {
  Trace trace;
  TraceQuality quality;
  Attribution attribution;
};

/// Files are of people: what is wrong with them is a mistake in the command, and one sentence.
ReadTrace read(const std::string& path) {
  try {
    ReadTrace read{.trace = seal(import_trace(path)), .quality = {}, .attribution = {}};
    read.quality = verify(read.trace);
    read.attribution = attribute(read.trace, read.quality);
    return read;
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
}

ExitCode code_of(const TraceQuality& quality) {
  return is_believable(quality.verdict) ? ExitCode::ok : ExitCode::invalid;
}

ExitCode verify_file(const std::string& path) {
  const ReadTrace file = read(path);
  std::cout << explain_text(file.quality);
  return code_of(file.quality);
}

ExitCode explain_file(const std::string& path) {
  const ReadTrace file = read(path);
  std::cout << trace_text(file.trace, file.quality, file.attribution);
  return code_of(file.quality);
}

ExitCode compare_files(const std::string& first, const std::string& second) {
  const ReadTrace a = read(first);
  const ReadTrace b = read(second);
  const TraceDifference moved = difference(a.trace, a.attribution, b.trace, b.attribution);
  const auto name = [](const ReadTrace& file, const std::string& path) {
    const std::string& arm = file.trace.events().session.arm;
    return arm.empty() ? path : arm;
  };
  std::string a_name = name(a, first);
  std::string b_name = name(b, second);
  if (a_name == b_name) {
    a_name = first;
    b_name = second;
  }
  std::cout << difference_text(moved, a_name, b_name);
  return moved.refusal.empty() ? ExitCode::ok : ExitCode::invalid;
}

ExitCode convert_file(const std::string& input, const std::string& output) {
  check_trace_path("--out", output);
  const ReadTrace file = read(input);
  write_trace_file(file.trace, file.quality, file.attribution, output);
  std::cout << trace_text(file.trace, file.quality, file.attribution) << how_to_open(output) << '\n';
  return code_of(file.quality);
}

/// A SQLite file that goes away with this.
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

/// Rows as lines of fields between tabs, under the names of the columns.
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
      const ReadTrace file = read(path);
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
};

/// One subcommand over one or two texts.
template <typename Run>
void add(CLI::App& trace, ExitCode& exit_code, const char* name, const char* help, const char* footer,
         std::vector<std::pair<const char*, const char*>> arguments, Run&& run) {
  auto names = std::make_shared<Names>();
  CLI::App* command = trace.add_subcommand(name, help);
  std::string* place = &names->first;
  for (const auto& [argument, words] : arguments) {
    command->add_option(argument, *place, words)->required();
    place = &names->second;
  }
  command->footer(footer);
  command->callback([names, run, &exit_code] { exit_code = run(*names); });
}

}  // namespace

void add_trace_file_commands(CLI::App& trace, ExitCode& exit_code) {
  const std::pair file{"FILE", "A trace of ours, of nsys (exported as SQLite) or of PyTorch's profiler (JSON)"};
  add(trace, exit_code, "verify", "Say whether a trace can be believed, check by check.",
      "Exit codes: 0 it can, perhaps with a warning; 2 it is no trace; 4 it cannot be believed.\n\n"
      "Example:\n  decodelab trace verify t.sqlite",
      {file}, [](const Names& names) { return verify_file(names.first); });
  add(trace, exit_code, "explain", "Say where the time of a trace's steps went.",
      "Example:\n  decodelab trace explain t.sqlite", {file},
      [](const Names& names) { return explain_file(names.first); });
  add(trace, exit_code, "diff", "Say what moved between two traces, in rows that add up to the difference of a step.",
      "Example:\n  decodelab trace diff t-causal.sqlite t-bigcode.sqlite",
      {{"A", "The trace that is compared with"}, {"B", "The trace that is compared"}},
      [](const Names& names) { return compare_files(names.first, names.second); });
  add(trace, exit_code, "sql", "Ask a trace in SQL; any format is read as the tables of a .sqlite trace.",
      "Example:\n  decodelab trace sql t.sqlite 'select name, count(*) from sqlite_master group by 1'",
      {file, {"QUESTION", "One statement that changes nothing"}},
      [](const Names& names) { return ask(names.first, names.second); });
  add(trace, exit_code, "import", "Read a trace made elsewhere, account for it, and write it in another format.",
      "Example:\n  nsys export --type sqlite report.nsys-rep\n"
      "  decodelab trace import report.sqlite --out report.pftrace",
      {file, {"--out", "The file to write, in the format of its ending"}},
      [](const Names& names) { return convert_file(names.first, names.second); });
}

}  // namespace decodelab
