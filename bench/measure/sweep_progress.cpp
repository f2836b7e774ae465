// Turns a run's plan into pieces with priors, and a launch's events into an estimate of the rest.
#include "bench/measure/sweep_progress.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/statistics/labels.h"
#include "reports/store/shard.h"

namespace decodelab {
namespace {

/// Estimates of the time before the first cell of a launch: the start of a process, and reading the weights from the
/// page cache.
constexpr double kStartSeconds = 0.5;
constexpr double kLoadBytesPerSecond = 1e9;
/// Checks run about this many steps for each arm, those of later launches fewer, and a block two visits of a warm-up
/// and as many timed steps.
constexpr double kStepsOfACheck = 4;
constexpr double kStepsOfARecheck = 2;
constexpr double kVisitSeconds = 0.25;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

SweepProgress::SweepProgress(const RunData& data, const ModelConfig& config, std::int64_t max_tokens,
                             const std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>>& finished)
    : data_(data), progress_(make_pieces(config, max_tokens)) {
  for (const auto& [key, piece] : index_) {
    const auto& [launch, kind, cell, block] = key;
    if (kind == "block" && finished.contains({launch, block, data.cells[static_cast<std::size_t>(cell)].id})) {
      progress_.piece_done(piece, seconds_of_block(launch, block, cell));
      ended_.insert(piece);
    }
  }
}

void SweepProgress::started(std::int64_t launch, const std::string& kind, std::int64_t cell) {
  running_ = first_open(launch, kind, cell);
  running_cell_ = cell;
  start_ = std::chrono::steady_clock::now();
  if (running_) {
    progress_.piece_started(*running_);
  }
  label_ = fmt::format("launch {}/{} {}", launch + 1, data_.run.launches,
                       kind == "load" ? "load" : cell_label(data_.cells[static_cast<std::size_t>(cell)]));
  if (kind != "load" && kind != "block") {
    label_ += " (check)";
  }
}

void SweepProgress::done(double seconds, double block_seconds) {
  if (running_) {
    progress_.piece_done(*running_, seconds);
    ended_.insert(*running_);
    running_.reset();
  }
  if (block_seconds > 0) {
    calibrate(running_cell_, block_seconds);
  }
}

void SweepProgress::calibrate(std::int64_t cell, double block_seconds) {
  for (const auto& [key, piece] : index_) {
    const auto& [launch, kind, piece_cell, block] = key;
    if (kind == "block" && piece_cell == cell && !ended_.contains(piece)) {
      progress_.calibrate(piece, block_seconds);
      return;  // it holds for all of the cell
    }
  }
}

void SweepProgress::launch_ended(std::int64_t launch) {
  for (const auto& [key, piece] : index_) {
    if (std::get<0>(key) == launch && !ended_.contains(piece)) {
      progress_.piece_skipped(piece);
      ended_.insert(piece);
    }
  }
  running_.reset();
}

void SweepProgress::show(const ProgressDisplay& display) const {
  const double elapsed = running_ ? seconds_since(start_) : 0;
  display(progress_.fraction(elapsed), progress_.remaining_seconds(elapsed), label_);
}

std::vector<ProgressPiece> SweepProgress::make_pieces(const ModelConfig& config, std::int64_t max_tokens) {
  std::vector<ProgressPiece> pieces;
  const auto add = [&](Key key, ProgressPiece piece) {
    index_.emplace(std::move(key), pieces.size());
    pieces.push_back(std::move(piece));
  };
  const double load = kStartSeconds + static_cast<double>(parameter_count(config)) * 4 / kLoadBytesPerSecond;
  const auto arms = static_cast<double>(data_.arms.size());
  const Shard shard = shard_of(data_.run).value_or(Shard());
  for (std::int64_t launch = 0; launch < data_.run.launches; ++launch) {
    add({launch, "load", 0, 0}, {.expected_seconds = load, .kind = "load", .phase = "", .cell = -1});
    for (std::int64_t block = -1; block < data_.run.blocks_per_launch; ++block) {
      for (std::size_t index = 0; index < data_.cells.size(); ++index) {
        const CellRecord& cell = data_.cells[index];
        const auto number = static_cast<std::int64_t>(index);
        const double step = prior_step_seconds(cell, config, max_tokens);
        if (!shard.has(index) || !runs(cell)) {
          continue;
        }
        if (block >= 0) {
          add({launch, "block", number, block}, {.expected_seconds = 2 * arms * (step + std::max(step, kVisitSeconds)),
                                                 .kind = "block",
                                                 .phase = to_string(cell.phase),
                                                 .cell = number});
        } else {
          const bool first = launch == 0 && cell.steps == 0;
          const char* const kind = first ? "check" : "recheck";
          add({launch, kind, number, 0}, {.expected_seconds = arms * (first ? kStepsOfACheck : kStepsOfARecheck) * step,
                                          .kind = kind,
                                          .phase = to_string(cell.phase),
                                          .cell = number});
        }
      }
    }
  }
  return pieces;
}

bool SweepProgress::runs(const CellRecord& cell) const {
  return std::ranges::any_of(data_.cell_arms,
                             [&](const CellArmRecord& row) { return row.cell_id == cell.id && is_open(row.status); });
}

// The first piece of that kind and cell that has not ended.
std::optional<std::size_t> SweepProgress::first_open(std::int64_t launch, const std::string& kind,
                                                     std::int64_t cell) const {
  for (const auto& [key, piece] : index_) {
    const auto& [piece_launch, piece_kind, piece_cell, block] = key;
    if (piece_launch == launch && piece_kind == kind && piece_cell == cell && !ended_.contains(piece)) {
      return piece;
    }
  }
  return std::nullopt;
}

double SweepProgress::seconds_of_block(std::int64_t launch, std::int64_t block, std::int64_t cell) const {
  std::int64_t total_ns = 0;
  for (const BlockRecord& record : data_.blocks) {
    if (record.launch == launch && record.block == block &&
        record.cell_id == data_.cells[static_cast<std::size_t>(cell)].id) {
      for (const VisitRecord& visit : record.visits) {
        total_ns += visit.wall_ns;
      }
    }
  }
  return static_cast<double>(total_ns) * 1e-9;
}

}  // namespace decodelab
