// Removes runs from a store and frees the disk space that they took.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// Which runs to remove: those that `keep` selects and those that `runs` names.
struct GcRequest {
  std::optional<std::int64_t> keep;  ///< Removes all finished runs except this many of the newest.
  std::vector<std::string> runs;     ///< As Store::find_run() takes them; removed even if they are not finished.
  bool dry_run = false;              ///< Only say what would be removed.
};

struct GcReport {
  struct Removed {
    RunRecord run;
    std::int64_t blocks = 0;
    std::int64_t sample_bytes = 0;
  };
  std::vector<Removed> removed;      ///< What was or would be removed, oldest first.
  std::int64_t kept = 0;             ///< Runs that stay.
  std::int64_t unfinished_kept = 0;  ///< Of these, runs that are not finished, which `keep` never removes.
  std::uintmax_t bytes_before = 0;   ///< Of the file.
  std::uintmax_t bytes_after = 0;
  std::string not_vacuumed;  ///< Why the file could not be made smaller; empty where it was.
};

/// Removes runs with all that belongs to them, and builds, machines and models that no run names any more, in one
/// transaction; then makes the file smaller. Throws std::invalid_argument for a run that is not there, a negative
/// `keep`, and as Store does.
GcReport collect_garbage(const std::filesystem::path& path, const GcRequest& request);

}  // namespace decodelab
