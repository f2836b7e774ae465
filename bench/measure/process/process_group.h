// What the kernel tells of the processes of one group.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace decodelab {

/// Core time and memory of all processes of a group, with the core time of children that were waited for.
struct GroupUsage {
  double cpu_seconds = 0;
  std::int64_t resident_bytes = 0;
};

/// Sums the usage of the processes of a group, from /proc; processes that end meanwhile are left out.
GroupUsage group_usage(pid_t group);

/// A process that is told from later ones of its number by when it was started.
struct StartedProcess {
  pid_t id = 0;
  std::int64_t start_ticks = 0;  ///< Since the machine was.
  bool operator==(const StartedProcess&) const = default;
};
/// Returns the processes that `root` has started and that those have, without `root` itself. A process whose parent has
/// ended belongs to nobody.
std::vector<StartedProcess> descendants_of(pid_t root);
/// Kills those of the processes that are still there, with their group left alone.
void kill_those_left(const std::vector<StartedProcess>& processes);

/// One process as the text of its /proc/PID/stat has it.
struct ProcessStat {
  pid_t parent = 0;
  pid_t group = 0;
  std::int64_t start_ticks = 0;
  std::int64_t cpu_ticks = 0;
  std::int64_t resident_pages = 0;
};
/// Parses the text of /proc/PID/stat; returns nothing for any other text. The command's name, which stands in
/// parentheses, may hold any characters.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

}  // namespace decodelab
