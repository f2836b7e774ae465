// The parent's side of a sweep: one child a launch, its events, and the rows of those that die.
#include "bench/measure/launcher.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/json_text.h"
#include "bench/measure/interrupt.h"
#include "bench/measure/process/child_process.h"
#include "bench/measure/sweep_progress.h"
#include "reports/store/shard.h"

namespace decodelab {
namespace {

constexpr int kLinePollMs = 500;
/// Exit code of a launch that stopped between blocks because it was asked to.
constexpr int kInterruptedExit = 130;

/// What a launch was doing when it was last heard of.
struct LastHeard {
  std::optional<std::int64_t> cell;
  std::string error;
  bool store_failed = false;  ///< The store failed the launch, not the cell.
};

/// Writes a death into the row of the arm that was running, or of every arm of the cell where `arm_id` is 0. Returns
/// false when the launch died outside of any cell.
bool record_death(Store& store, const RunData& data, const LastHeard& last, std::int64_t arm_id, int status) {
  if (!last.cell) {
    return false;
  }
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const std::string how = WIFSIGNALED(status) ? fmt::format("signal {}{}", WTERMSIG(status),
                                                            killed ? ", as the system does when memory runs out" : "")
                                              : fmt::format("exit code {}", WEXITSTATUS(status));
  for (CellArmRecord row : data.cell_arms) {
    if (is_open(row.status) && row.cell_id == data.cells[static_cast<std::size_t>(*last.cell)].id &&
        (arm_id == 0 || row.arm_id == arm_id)) {
      row.status = killed ? RowStatus::oom : RowStatus::failed;
      row.reason = fmt::format("the process died here ({}){}", how, last.error.empty() ? "" : ": " + last.error);
      store.update_cell_arm(row);
    }
  }
  return true;
}

}  // namespace

std::string to_json_line(const LaunchEvent& event) {
  return nlohmann::json{{"event", event.event},
                        {"kind", event.kind},
                        {"cell", event.cell},
                        {"seconds", event.seconds},
                        {"block_seconds", event.block_seconds},
                        {"message", event.message}}
             .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
         "\n";
}

LaunchEvent launch_event_from_json(const std::string& line) {
  try {
    const auto json = parse_json(line);
    return {.event = json.at("event"),
            .kind = json.at("kind"),
            .cell = json.at("cell"),
            .seconds = json.at("seconds"),
            .block_seconds = json.at("block_seconds"),
            .message = json.at("message")};
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(fmt::format("a launch sent a line that is no event ({})", error.what()));
  }
}

SweepEnd run_launches(Store& store, const std::filesystem::path& store_path, std::int64_t run_id,
                      const ModelConfig& config, std::int64_t max_tokens, const LaunchesWanted& wanted,
                      const ProgressDisplay& display) {
  RunData data = store.load_run(run_id);
  SweepProgress progress(data, config, max_tokens, store.finished_blocks(run_id));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const bool any = std::ranges::any_of(data.cell_arms, [](const CellArmRecord& row) { return is_open(row.status); });
  std::int64_t launches = any ? wanted(0) : 0;
  for (std::int64_t launch = 0; launch < launches;) {
    progress.started(launch, "load", 0);
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t spent_before = store.time_spent_ns(run_id, launch);
    ChildProcess child({program, "launch", "--store", store_path.string(), "--run", std::to_string(run_id), "--launch",
                        std::to_string(launch)});
    LastHeard last;
    bool asked_to_stop = false;
    while (!child.ended()) {
      const auto line = child.read_line(kLinePollMs);
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
          progress.done(event.seconds, event.block_seconds);
          last.cell.reset();
        } else if (event.event == "error") {
          last.error = event.message;
          last.store_failed = event.kind == kStoreFailed;
        }
      }
      progress.show(display);
    }
    const int status = child.wait();
    const std::int64_t took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    const std::int64_t rest = took - (store.time_spent_ns(run_id, launch) - spent_before);
    if (rest > 0) {
      store.add_times_spent(run_id, {{.shard = shard_name(data.run), .launch = launch, .ns = rest}});
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      progress.launch_ended(launch);
      ++launch;
      const std::int64_t before = std::exchange(launches, wanted(launch));
      for (std::int64_t dropped = launches; dropped < before; ++dropped) {
        progress.launch_ended(dropped);
      }
    } else if (interrupted() || (WIFEXITED(status) && WEXITSTATUS(status) == kInterruptedExit)) {
      return SweepEnd::interrupted;
    } else if (last.store_failed) {
      throw StoreError(last.error);
    } else {
      data.cell_arms = store.load_plan(run_id).cell_arms;
      if (!record_death(store, data, last, child.note(), status)) {
        throw std::runtime_error(fmt::format("launch {} died outside of any cell: {}", launch + 1,
                                             last.error.empty() ? "no reason was given" : last.error));
      }
    }
  }
  return SweepEnd::complete;
}

}  // namespace decodelab
