// What the kernel tells of the processes of one group.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace decodelab {

/// Core time and memory of all processes of a group, with the core time of children that were waited for.
struct GroupUsage {
  double cpu_seconds = 0;
  std::int64_t resident_bytes = 0;
};

/// Sums over /proc; processes that end meanwhile are left out.
GroupUsage group_usage(pid_t group);

/// One process as the text of its /proc/PID/stat has it.
struct ProcessStat {
  pid_t group = 0;
  std::int64_t cpu_ticks = 0;
  std::int64_t resident_pages = 0;
};
/// Nothing for a text that is none. The command's name, which stands in parentheses, may hold anything.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

}  // namespace decodelab
