// The parent's side of a sweep: one child a launch, its events, and the rows of those that die.
#include "bench/measure/launcher.h"

#include "bench/measure/child_process.h"
#include "bench/measure/interrupt.h"
#include "bench/measure/progress.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <stdexcept>

namespace decodelab {
namespace {

constexpr int kPollMs = 500;
/// Exit code of a launch that stopped between blocks because it was asked to.
constexpr int kInterruptedExit = 130;
/// What a launch costs before its first cell: a start, and the weights at the speed of a disk's cache.
constexpr double kStartSeconds = 0.5;
constexpr double kLoadBytesPerSecond = 1e9;
/// Checks run about this many steps for each arm, and a block two visits of a warm-up and as many timed steps.
constexpr double kStepsOfACheck = 4;
constexpr double kVisitSeconds = 0.25;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The pieces of all launches and their state, for the ETA.
class SweepProgress {
 public:
  SweepProgress(const RunData& data, const ModelConfig& config, std::int64_t max_tokens,
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

  void started(std::int64_t launch, const std::string& kind, std::int64_t cell) {
    running_ = find(launch, kind, cell);
    start_ = std::chrono::steady_clock::now();
    if (running_) {
      progress_.piece_started(*running_);
    }
    label_ = fmt::format("launch {}/{} {}", launch + 1, data_.run.launches, kind == "load" ? "load" : cell_label(cell));
    if (kind == "check") {
      label_ += " (check)";
    }
  }
  void done(double seconds) {
    if (running_) {
      progress_.piece_done(*running_, seconds);
      ended_.insert(*running_);
      running_.reset();
    }
  }
  /// What a launch left undone when it was through will not run.
  void launch_ended(std::int64_t launch) {
    for (const auto& [key, piece] : index_) {
      if (std::get<0>(key) == launch && !ended_.contains(piece)) {
        progress_.piece_skipped(piece);
        ended_.insert(piece);
      }
    }
    running_.reset();
  }
  void show(const ProgressDisplay& display) const {
    const double elapsed = running_ ? seconds_since(start_) : 0;
    display(progress_.fraction(elapsed), progress_.remaining_seconds(elapsed), label_);
  }

 private:
  using Key = std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t>;  // launch, kind, cell, block

  std::vector<ProgressPiece> make_pieces(const ModelConfig& config, std::int64_t max_tokens) {
    std::vector<ProgressPiece> pieces;
    const auto add = [&](Key key, ProgressPiece piece) {
      index_.emplace(std::move(key), pieces.size());
      pieces.push_back(std::move(piece));
    };
    const double load = kStartSeconds + static_cast<double>(parameter_count(config)) * 4 / kLoadBytesPerSecond;
    const auto arms = static_cast<double>(data_.arms.size());
    for (std::int64_t launch = 0; launch < data_.run.launches; ++launch) {
      add({launch, "load", 0, 0}, {.expected_seconds = load, .kind = "load", .phase = "", .cell = -1});
      for (std::int64_t block = -1; block < data_.run.blocks_per_launch; ++block) {
        for (std::size_t index = 0; index < data_.cells.size(); ++index) {
          const CellRecord& cell = data_.cells[index];
          const auto number = static_cast<std::int64_t>(index);
          const double step = prior_step_seconds(cell, config, max_tokens);
          if (!runs(cell)) {
            continue;
          }
          if (block >= 0) {
            add({launch, "block", number, block},
                {.expected_seconds = 2 * arms * (step + std::max(step, kVisitSeconds)),
                 .kind = "block",
                 .phase = cell.phase,
                 .cell = number});
          } else if (launch == 0 && cell.steps == 0) {
            add({launch, "check", number, 0}, {.expected_seconds = arms * kStepsOfACheck * step,
                                               .kind = "check",
                                               .phase = cell.phase,
                                               .cell = number});
          }
        }
      }
    }
    return pieces;
  }
  bool runs(const CellRecord& cell) const {
    return std::ranges::any_of(data_.cell_arms, [&](const CellArmRecord& row) {
      return row.cell_id == cell.id && (row.status == RowStatus::planned || row.status == RowStatus::ok);
    });
  }
  /// The first piece of that kind and cell that has not ended.
  std::optional<std::size_t> find(std::int64_t launch, const std::string& kind, std::int64_t cell) const {
    for (const auto& [key, piece] : index_) {
      const auto& [piece_launch, piece_kind, piece_cell, block] = key;
      if (piece_launch == launch && piece_kind == kind && piece_cell == cell && !ended_.contains(piece)) {
        return piece;
      }
    }
    return std::nullopt;
  }
  double seconds_of_block(std::int64_t launch, std::int64_t block, std::int64_t cell) const {
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
  std::string cell_label(std::int64_t index) const {
    const CellRecord& cell = data_.cells[static_cast<std::size_t>(index)];
    return cell.phase == "decode"
               ? fmt::format("b{} tg @ d{}", cell.batch, cell.length)
               : fmt::format("b{} {}{}", cell.batch, cell.phase == "prefill" ? "pp" : "gen", cell.length);
  }

  const RunData& data_;
  std::map<Key, std::size_t> index_;
  Progress progress_;
  std::set<std::size_t> ended_;
  std::optional<std::size_t> running_;
  std::chrono::steady_clock::time_point start_;
  std::string label_;
};

/// What a launch was doing when it was last heard of.
struct LastHeard {
  std::optional<std::int64_t> cell;
  std::int64_t arm_id = 0;
  std::string error;
};

/// Makes rows of a death; false when the launch died outside of any cell.
bool record_death(Store& store, const RunData& data, const LastHeard& last, int status) {
  if (!last.cell) {
    return false;
  }
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const std::string how = WIFSIGNALED(status) ? fmt::format("signal {}{}", WTERMSIG(status),
                                                            killed ? ", as the system does when memory runs out" : "")
                                              : fmt::format("exit code {}", WEXITSTATUS(status));
  for (CellArmRecord row : data.cell_arms) {
    const bool open = row.status == RowStatus::planned || row.status == RowStatus::ok;
    if (open && row.cell_id == data.cells[static_cast<std::size_t>(*last.cell)].id &&
        (last.arm_id == 0 || row.arm_id == last.arm_id)) {
      row.status = killed ? RowStatus::oom : RowStatus::failed;
      row.reason = fmt::format("the process died here ({}){}", how, last.error.empty() ? "" : ": " + last.error);
      store.update_cell_arm(row);
    }
  }
  return true;
}

}  // namespace

std::string to_json_line(const LaunchEvent& event) {
  return nlohmann::json{{"event", event.event},   {"kind", event.kind},       {"cell", event.cell},
                        {"arm_id", event.arm_id}, {"seconds", event.seconds}, {"message", event.message}}
             .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
         "\n";
}

LaunchEvent launch_event_from_json(const std::string& line) {
  try {
    const auto json = nlohmann::json::parse(line);
    return {.event = json.at("event"),
            .kind = json.at("kind"),
            .cell = json.at("cell"),
            .arm_id = json.at("arm_id"),
            .seconds = json.at("seconds"),
            .message = json.at("message")};
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(fmt::format("a launch sent a line that is no event ({})", error.what()));
  }
}

SweepEnd run_launches(Store& store, const std::filesystem::path& store_path, std::int64_t run_id,
                      const ModelConfig& config, std::int64_t max_tokens, const ProgressDisplay& display) {
  RunData data = store.load_run(run_id);
  SweepProgress progress(data, config, max_tokens, store.finished_blocks(run_id));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  for (std::int64_t launch = 0; launch < data.run.launches;) {
    progress.started(launch, "load", 0);
    ChildProcess child({program, "launch", "--store", store_path.string(), "--run", std::to_string(run_id), "--launch",
                        std::to_string(launch)});
    LastHeard last;
    bool asked_to_stop = false;
    while (!child.ended()) {
      const auto line = child.read_line(kPollMs);
      if (interrupted() && !asked_to_stop) {
        child.signal(SIGTERM);
        asked_to_stop = true;
      }
      if (line) {
        const LaunchEvent event = launch_event_from_json(*line);
        if (event.event == "started") {
          progress.started(launch, event.kind, event.cell);
          last.cell = event.cell;
        } else if (event.event == "done") {
          progress.done(event.seconds);
          last.cell.reset();
        } else if (event.event == "arm") {
          last.arm_id = event.arm_id;
        } else if (event.event == "error") {
          last.error = event.message;
        }
      }
      progress.show(display);
    }
    const int status = child.wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      progress.launch_ended(launch);
      ++launch;
    } else if (interrupted() || (WIFEXITED(status) && WEXITSTATUS(status) == kInterruptedExit)) {
      return SweepEnd::interrupted;
    } else {
      data.cell_arms = store.load_run(run_id).cell_arms;
      if (!record_death(store, data, last, status)) {
        throw std::runtime_error(fmt::format("launch {} died outside of any cell: {}", launch + 1,
                                             last.error.empty() ? "no reason was given" : last.error));
      }
    }
  }
  return SweepEnd::complete;
}

}  // namespace decodelab
