// Rows in and rows out of the store.
#include "reports/store/store.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/store/read_rows.h"
#include "reports/store/statement.h"
#include "reports/store/store_file.h"
#include "reports/store/write_rows.h"

namespace decodelab {
namespace {

// Checks every index of rows into cells and arms before anything is written.
void check_indices(const RunData& data) {
  for (const CellArmRecord& row : data.cell_arms) {
    const bool valid = row.cell_id >= 0 && row.cell_id < std::ssize(data.cells) && row.arm_id >= 0 &&
                       row.arm_id < std::ssize(data.arms);
    if (valid) {
      continue;
    }
    throw std::invalid_argument(
        fmt::format("A row of a new run names cell {} of {} and arm {} of {}; both are indices from 0.", row.cell_id,
                    data.cells.size(), row.arm_id, data.arms.size()));
  }
}

// Refuses what SQLite would refuse without a clear message, or would store as something else: it has no NaN.
void check_trace(const TraceRecord& trace) {
  for (const double value : {trace.perturbation, trace.perturbation_low, trace.perturbation_high}) {
    if (std::isfinite(value)) {
      continue;
    }
    throw std::invalid_argument(
        fmt::format("The trace of cell {} and arm {} has a perturbation of {}; expected a finite ratio, or 0 where "
                    "none was measured.",
                    trace.cell_id, trace.arm_id, value));
  }
  std::set<std::pair<std::string, std::string>> names;
  for (const TraceShareRecord& share : trace.shares) {
    if (names.emplace(share.kind, share.name).second) {
      continue;
    }
    throw std::invalid_argument(
        fmt::format("The trace of cell {} and arm {} has the {} '{}' twice; add its parts up first.", trace.cell_id,
                    trace.arm_id, share.kind, share.name));
  }
}

std::optional<std::int64_t> first_id(SQLite::Statement row) {
  if (!row.executeStep()) {
    return std::nullopt;
  }
  return row.getColumn(0).getInt64();
}

std::optional<std::int64_t> select_run(SQLite::Database& database, std::string_view selector) {
  constexpr std::string_view kLatest = "latest";
  if (selector.starts_with(kLatest)) {
    const std::string_view rest = selector.substr(kLatest.size());
    const auto back = rest.empty()          ? std::optional<std::int64_t>(0)
                      : rest.front() == '~' ? whole_number(rest.substr(1))
                                            : std::nullopt;
    if (back && *back >= 0) {
      return first_id(
          prepared(database, "SELECT id FROM runs ORDER BY started_unix_ns DESC, id DESC LIMIT 1 OFFSET ?", *back));
    }
  }
  if (const auto id = whole_number(selector)) {
    if (const auto found = first_id(prepared(database, "SELECT id FROM runs WHERE id = ?", *id))) {
      return found;
    }
  }
  const std::string name(selector);
  return first_id(prepared(
      database, "SELECT id FROM runs WHERE name = ? OR uuid = ? ORDER BY started_unix_ns DESC, id DESC", name, name));
}

}  // namespace

struct Store::Impl {
  StoreFile file;

  // Throws std::invalid_argument for an id that no run has.
  RunRecord run_record(std::int64_t run_id) {
    auto run = file.read([&](SQLite::Database& database) { return read_run(database, run_id); });
    if (run) {
      return *std::move(run);
    }
    throw std::invalid_argument(fmt::format("The store '{}' has no run {}.", file.path().string(), run_id));
  }

  // Updates one row; throws std::invalid_argument when it is not there.
  template <class... Values>
  void update(SQLite::Database& database, const std::string& what, const std::string& sql, const Values&... values) {
    if (prepared(database, sql, values...).exec() == 1) {
      return;
    }
    throw std::invalid_argument(fmt::format("The store '{}' has no {}.", file.path().string(), what));
  }
};

Store::Store(const std::filesystem::path& path, StoreAccess access)
    : impl_(new Impl{.file = StoreFile(path, access)}) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

void Store::add_run(RunData& data) {
  check_indices(data);
  RunData added = data;
  impl_->file.write([&](SQLite::Database& database) {
    insert_run(database, added.run);
    for (CellRecord& cell : added.cells) {
      cell.id = insert_cell(database, added.run.id, cell);
    }
    for (ArmRecord& arm : added.arms) {
      arm.id = insert_arm(database, added.run.id, arm);
    }
    for (CellArmRecord& row : added.cell_arms) {
      row.cell_id = added.cells[static_cast<std::size_t>(row.cell_id)].id;
      row.arm_id = added.arms[static_cast<std::size_t>(row.arm_id)].id;
      insert_cell_arm(database, row);
    }
  });
  data = std::move(added);
}

void Store::update_cell_arm(const CellArmRecord& row) {
  impl_->file.write([&](SQLite::Database& database) {
    if (decodelab::update_cell_arm(database, row)) {
      return;
    }
    throw std::invalid_argument(fmt::format("The store '{}' has no row for cell {} and arm {}.",
                                            impl_->file.path().string(), row.cell_id, row.arm_id));
  });
}

void Store::identify_arm(const ArmRecord& arm) {
  impl_->file.write([&](SQLite::Database& database) {
    auto row = prepared(database, "SELECT engine, version, settings FROM arms WHERE id = ?", arm.id);
    if (!row.executeStep()) {
      throw std::runtime_error(fmt::format("the store has no arm {}", arm.id));
    }
    const auto held = [&](int column) { return row.getColumn(column).getString(); };
    if (!held(0).empty() && (held(0) != arm.engine || held(1) != arm.version || held(2) != arm.settings)) {
      throw std::invalid_argument(fmt::format(
          "the worker says that it is {} {} {}, and in this run it was {} {} {}: measure one engine at a time",
          arm.engine, arm.version, arm.settings, held(0), held(1), held(2)));
    }
    impl_->update(database, fmt::format("arm {}", arm.id),
                  "UPDATE arms SET engine = ?, version = ?, settings = ? WHERE id = ?", arm.engine, arm.version,
                  arm.settings, arm.id);
  });
}

void Store::set_steps(std::int64_t cell_id, std::int64_t steps, std::int64_t slice_steps) {
  impl_->file.write([&](SQLite::Database& database) {
    impl_->update(database, fmt::format("cell {}", cell_id), "UPDATE cells SET steps = ?, turn_steps = ? WHERE id = ?",
                  steps, slice_steps, cell_id);
  });
}

void Store::set_blocks_per_launch(std::int64_t run_id, std::int64_t blocks) {
  impl_->file.write([&](SQLite::Database& database) {
    impl_->update(database, fmt::format("run {}", run_id), "UPDATE runs SET blocks_per_launch = ? WHERE id = ?", blocks,
                  run_id);
  });
}

void Store::set_launches(std::int64_t run_id, std::int64_t launches) {
  impl_->file.write([&](SQLite::Database& database) {
    if (first_id(prepared(database, "SELECT id FROM blocks WHERE run_id = ? AND launch >= ?", run_id, launches))) {
      throw std::invalid_argument(fmt::format("Run {} has blocks of more than {} launches.", run_id, launches));
    }
    impl_->update(database, fmt::format("run {}", run_id), "UPDATE runs SET launches = ? WHERE id = ?", launches,
                  run_id);
  });
}

void Store::add_times_spent(std::int64_t run_id, const std::vector<TimeSpentRecord>& times) {
  impl_->file.write([&](SQLite::Database& database) {
    for (const TimeSpentRecord& time : times) {
      add_time_spent(database, run_id, time);
    }
  });
}

std::int64_t Store::time_spent_ns(std::int64_t run_id, std::int64_t launch) const {
  return impl_->file.read([&](SQLite::Database& database) {
    return first_id(prepared(database, "SELECT coalesce(sum(ns), 0) FROM times_spent WHERE run_id = ? AND launch = ?",
                             run_id, launch))
        .value_or(0);
  });
}

void Store::save_proof(const CellProofRecord& proof) {
  impl_->file.write([&](SQLite::Database& database) { replace_proof(database, proof); });
}

void Store::save_completions(const std::vector<CompletionRecord>& completions) {
  impl_->file.write([&](SQLite::Database& database) {
    for (const CompletionRecord& completion : completions) {
      replace_completion(database, completion);
    }
  });
}

void Store::save_quality(const QualityRecord& quality) {
  impl_->file.write([&](SQLite::Database& database) { replace_quality(database, quality); });
}

void Store::add_block(std::int64_t run_id, const BlockRecord& block) {
  impl_->file.write([&](SQLite::Database& database) {
    const auto there = first_id(
        prepared(database, "SELECT id FROM blocks WHERE run_id = ? AND launch = ? AND block = ? AND cell_id = ?",
                 run_id, block.launch, block.block, block.cell_id));
    if (there) {
      throw std::invalid_argument(
          fmt::format("The store '{}' already has block {} of launch {} in cell {} of run {}; a block is measured "
                      "once. Use --resume.",
                      impl_->file.path().string(), block.block, block.launch, block.cell_id, run_id));
    }
    insert_block(database, run_id, block);
  });
}

void Store::save_trace(std::int64_t run_id, const TraceRecord& trace) {
  check_trace(trace);
  impl_->file.write([&](SQLite::Database& database) {
    const auto there = first_id(prepared(database,
                                         "SELECT cell_id FROM cell_arms JOIN cells ON cells.id = cell_id WHERE run_id "
                                         "= ? AND cell_id = ? AND arm_id = ?",
                                         run_id, trace.cell_id, trace.arm_id));
    if (!there) {
      throw std::invalid_argument(fmt::format("The store '{}' has no row for cell {} and arm {} in run {}.",
                                              impl_->file.path().string(), trace.cell_id, trace.arm_id, run_id));
    }
    replace_trace(database, trace);
  });
}

void Store::end_run(std::int64_t run_id, std::int64_t ended_unix_ns) {
  impl_->file.write([&](SQLite::Database& database) {
    impl_->update(database, fmt::format("run {}", run_id), "UPDATE runs SET ended_unix_ns = ? WHERE id = ?",
                  ended_unix_ns, run_id);
  });
}

std::int64_t Store::find_run(std::string_view selector) const {
  const auto found = impl_->file.read([&](SQLite::Database& database) { return select_run(database, selector); });
  if (found) {
    return *found;
  }
  constexpr std::size_t kNamesShown = 20;  // more would hide the sentence before them
  std::string known;
  const auto runs = list_runs();
  for (std::size_t i = 0; i < std::min(runs.size(), kNamesShown); ++i) {
    const RunRecord& run = runs[runs.size() - 1 - i];
    known += fmt::format("{}{}{}", i == 0 ? "" : ", ", run.id, run.name.empty() ? "" : fmt::format(" ({})", run.name));
  }
  throw std::invalid_argument(
      fmt::format("The store '{}' has no run '{}'. {}{}", impl_->file.path().string(), selector,
                  known.empty() ? "It has no runs at all." : fmt::format("Newest first, it has {}", known),
                  known.empty()               ? ""
                  : runs.size() > kNamesShown ? fmt::format(" and {} more.", runs.size() - kNamesShown)
                                              : "."));
}

RunRecord Store::load_run_record(std::int64_t run_id) const { return impl_->run_record(run_id); }

RunData Store::load_run(std::int64_t run_id) const {
  RunRecord run = impl_->run_record(run_id);
  return impl_->file.read([&](SQLite::Database& database) {
    RunData data = read_plan(database, run);
    data.blocks = read_blocks(database, run_id);
    return data;
  });
}

RunData Store::load_plan(std::int64_t run_id) const {
  RunRecord run = impl_->run_record(run_id);
  return impl_->file.read([&](SQLite::Database& database) { return read_plan(database, run); });
}

std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> Store::finished_blocks(std::int64_t run_id) const {
  return impl_->file.read([&](SQLite::Database& database) {
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> finished;
    auto row = prepared(database, "SELECT launch, block, cell_id FROM blocks WHERE run_id = ?", run_id);
    while (row.executeStep()) {
      finished.emplace(row.getColumn(0).getInt64(), row.getColumn(1).getInt64(), row.getColumn(2).getInt64());
    }
    return finished;
  });
}

std::vector<RunRecord> Store::list_runs() const { return impl_->file.read(read_runs); }

RunSelector parse_run_selector(std::string_view text, const std::filesystem::path& default_store) {
  const std::size_t at = text.rfind('@');
  const std::string_view store = at == std::string_view::npos ? std::string_view() : text.substr(0, at);
  const std::string_view rest = at == std::string_view::npos ? text : text.substr(at + 1);
  const std::size_t colon = rest.find(':');
  const std::string_view run = rest.substr(0, colon);
  const std::string_view arm = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  if (run.empty() || (at != std::string_view::npos && store.empty()) ||
      (colon != std::string_view::npos && arm.empty())) {
    throw std::invalid_argument(fmt::format(
        "'{}' names no run; expected [STORE@]RUN[:ARM], where RUN is an id, a name, latest or latest~n.", text));
  }
  return {.store = store.empty() ? default_store : std::filesystem::path(store),
          .run = std::string(run),
          .arm = std::string(arm)};
}

}  // namespace decodelab
