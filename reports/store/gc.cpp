// Deletes runs, then vacuums.
#include "reports/store/gc.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include "reports/store/read_rows.h"
#include "reports/store/statement.h"
#include "reports/store/store.h"
#include "reports/store/store_file.h"

namespace decodelab {
namespace {

std::uintmax_t size_of(const std::filesystem::path& path) {
  std::uintmax_t total = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path.string() + suffix, error);
    if (!error) {
      total += bytes;
    }
  }
  return total;
}

GcReport::Removed measure(SQLite::Database& database, const RunRecord& run) {
  auto row = prepared(database,
                      "SELECT count(DISTINCT blocks.id), coalesce(sum(length(samples_ns)), 0) FROM blocks LEFT JOIN "
                      "visits ON block_id = blocks.id WHERE run_id = ?",
                      run.id);
  row.executeStep();
  return {.run = run, .blocks = row.getColumn(0).getInt64(), .sample_bytes = row.getColumn(1).getInt64()};
}

/// Chooses what to remove and what to keep, from one consistent state of the store.
GcReport choose(SQLite::Database& database, const GcRequest& request, const std::set<std::int64_t>& named) {
  const std::vector<RunRecord> runs = read_runs(database);
  std::int64_t older = std::ranges::count_if(runs, [](const RunRecord& run) { return run.ended_unix_ns != 0; });
  GcReport report;
  for (const RunRecord& run : runs) {
    const bool finished = run.ended_unix_ns != 0;
    const bool old = request.keep && finished && older > *request.keep;
    if (finished) {
      --older;
    }
    if (old || named.contains(run.id)) {
      report.removed.push_back(measure(database, run));
    } else {
      ++report.kept;
      report.unfinished_kept += finished ? 0 : 1;
    }
  }
  return report;
}

void remove(SQLite::Database& database, const GcReport& report) {
  for (const GcReport::Removed& removed : report.removed) {
    // Blocks are deleted first: SQLite finds their visits by the primary key, and then no arm has a visit left to
    // search for.
    execute(database, "DELETE FROM blocks WHERE run_id = ?", removed.run.id);
    execute(database, "DELETE FROM runs WHERE id = ?", removed.run.id);
  }
  database.exec(
      "DELETE FROM builds WHERE id NOT IN (SELECT build_id FROM runs);"
      "DELETE FROM machines WHERE id NOT IN (SELECT machine_id FROM runs);"
      "DELETE FROM models WHERE id NOT IN (SELECT model_id FROM runs)");
}

}  // namespace

GcReport collect_garbage(const std::filesystem::path& path, const GcRequest& request) {
  if (request.keep && *request.keep < 0) {
    throw std::invalid_argument(fmt::format("--keep {}: expected 0 or more runs", *request.keep));
  }
  std::set<std::int64_t> named;
  {
    const Store store(path, StoreAccess::read);
    for (const std::string& run : request.runs) {
      named.insert(store.find_run(run));
    }
  }
  StoreFile file(path, request.dry_run ? StoreAccess::read : StoreAccess::write);
  GcReport report;
  if (request.dry_run) {
    report = file.read([&](SQLite::Database& database) { return choose(database, request, named); });
    report.bytes_before = report.bytes_after = size_of(path);
    return report;
  }
  const std::uintmax_t before = size_of(path);
  file.write([&](SQLite::Database& database) {
    report = choose(database, request, named);
    remove(database, report);
  });
  if (!report.removed.empty()) {
    try {
      file.vacuum();
    } catch (const std::runtime_error& error) {
      report.not_vacuumed = error.what();
    }
  }
  report.bytes_before = before;
  report.bytes_after = size_of(path);
  return report;
}

}  // namespace decodelab
