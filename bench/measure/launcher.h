// Starts the launches of a sweep, each in a fresh process, and survives what happens to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "bench/measure/sweep_progress.h"
#include "bench/plan/sweep_plan.h"
#include "reports/store/store.h"

namespace decodelab {

/// What a launch tells its parent, one JSON object per line on a descriptor of its own (libraries print on stdout).
struct LaunchEvent {
  std::string event;  ///< started, done, error
  std::string kind;   ///< load, check, recheck or block; of an error, kStoreFailed where it was the store's
  std::int64_t cell = 0;
  double seconds = 0;
  double block_seconds = 0;  ///< See LaunchPiece.
  std::string message;
};
inline constexpr const char* kStoreFailed = "store";
std::string to_json_line(const LaunchEvent& event);
/// Parses a line of to_json_line(). Throws std::invalid_argument for any other line.
LaunchEvent launch_event_from_json(const std::string& line);

/// How a sweep ended, as far as its launches are concerned.
enum class SweepEnd { complete, interrupted };

/// Called before each launch with the number of launches that are done; returns how many there shall be in all, at most
/// the run's own number.
using LaunchesWanted = std::function<std::int64_t(std::int64_t done)>;

/// Runs every missing launch of the run, one after the other, as `program launch --store ... --run ... --launch i`,
/// until there are as many as `wanted` says.
///
/// A launch that dies leaves `failed` on the row that it was running (`oom` where the system killed it) and is started
/// again for what is left. SIGINT and SIGTERM let the current block finish. Throws StoreError when the store fails a
/// launch, std::runtime_error when a launch cannot start or fails outside of any cell.
SweepEnd run_launches(Store& store, const std::filesystem::path& store_path, std::int64_t run_id,
                      const ModelConfig& config, std::int64_t max_tokens, const LaunchesWanted& wanted,
                      const ProgressDisplay& display);

}  // namespace decodelab
