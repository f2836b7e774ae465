// Reads /proc/PID/stat of every process.
#include "bench/measure/process/process_group.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

namespace decodelab {
namespace {

// Indices of the fields after the name, from 0, where proc(5) counts from 3.
constexpr std::size_t kParentField = 1;
constexpr std::size_t kGroupField = 2;
constexpr std::size_t kFirstCpuField = 11;  // utime, stime, cutime, cstime
constexpr std::size_t kCpuFields = 4;
constexpr std::size_t kStartField = 19;
constexpr std::size_t kResidentField = 21;

std::optional<ProcessStat> stat_of(const std::string& id) {
  std::ifstream file(std::filesystem::path("/proc") / id / "stat", std::ios::binary);
  std::string text;
  std::getline(file, text, '\0');
  return parse_process_stat(text);
}

/// Calls `visit` with the number and the stat of every process that there is.
template <typename Visit>
void for_each_process(Visit&& visit) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    if (const auto stat = stat_of(name)) {
      visit(static_cast<pid_t>(std::stol(name)), *stat);
    }
  }
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(name_end + 1);
  std::vector<std::int64_t> fields;
  while (fields.size() <= kResidentField) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    if (word.empty()) {
      return std::nullopt;
    }
    std::int64_t value = 0;
    // The state is a letter; it counts as 0.
    std::from_chars(word.data(), word.data() + word.size(), value);
    fields.push_back(value);
    text.remove_prefix(word.size());
  }
  ProcessStat stat{.parent = static_cast<pid_t>(fields[kParentField]),
                   .group = static_cast<pid_t>(fields[kGroupField]),
                   .start_ticks = fields[kStartField],
                   .resident_pages = fields[kResidentField]};
  for (std::size_t field = kFirstCpuField; field < kFirstCpuField + kCpuFields; ++field) {
    stat.cpu_ticks += fields[field];
  }
  return stat;
}

GroupUsage group_usage(pid_t group) {
  GroupUsage usage;
  for_each_process([&](pid_t /*id*/, const ProcessStat& stat) {
    if (stat.group == group) {
      usage.cpu_seconds += static_cast<double>(stat.cpu_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
      usage.resident_bytes += stat.resident_pages * sysconf(_SC_PAGESIZE);
    }
  });
  return usage;
}

std::vector<StartedProcess> descendants_of(pid_t root) {
  std::multimap<pid_t, StartedProcess> children;  // by parent
  for_each_process([&](pid_t id, const ProcessStat& stat) {
    children.emplace(stat.parent, StartedProcess{.id = id, .start_ticks = stat.start_ticks});
  });
  std::vector<StartedProcess> found{{.id = root}};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const auto [begin, end] = children.equal_range(found[next].id);
    std::transform(begin, end, std::back_inserter(found), [](const auto& child) { return child.second; });
  }
  found.erase(found.begin());
  return found;
}

void kill_those_left(const std::vector<StartedProcess>& processes) {
  for (const StartedProcess& process : processes) {
    const auto stat = stat_of(std::to_string(process.id));
    if (stat && stat->start_ticks == process.start_ticks) {
      kill(process.id, SIGKILL);
    }
  }
}

}  // namespace decodelab
