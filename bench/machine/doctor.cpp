// Reads what the kernel tells about clocks, load and limits.
#include "bench/machine/doctor.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/files.h"
#include "bench/machine/environment.h"

namespace decodelab {
namespace {

constexpr const char* kNotVisible = "not visible";
/// Runnable processes beyond which something else than the measurement is at work.
constexpr double kCalmLoad = 0.3;

/// The file's text without the end of its last line; empty where it cannot be read.
std::string text_of(const std::filesystem::path& path) {
  std::string result = read_if_there(path).value_or("");
  result.erase(result.find_last_not_of(" \n") + 1);
  return result;
}

std::vector<std::filesystem::path> cpu_folders(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root / "sys/devices/system/cpu", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.size() > 3 && name.starts_with("cpu") && name.find_first_not_of("0123456789", 3) == std::string::npos) {
      folders.push_back(entry->path());
    }
  }
  return folders;
}

Finding governor(const std::filesystem::path& root) {
  std::set<std::string> governors;
  for (const auto& cpu : cpu_folders(root)) {
    if (const std::string name = text_of(cpu / "cpufreq/scaling_governor"); !name.empty()) {
      governors.insert(name);
    }
  }
  if (governors.empty()) {
    return {.name = "governor", .value = kNotVisible, .advice = ""};
  }
  std::string value;
  for (const std::string& name : governors) {
    value += (value.empty() ? "" : ", ") + name;
  }
  return {.name = "governor",
          .value = value,
          .advice = value == "performance" ? "" : "as root: cpupower frequency-set -g performance"};
}

Finding boost(const std::filesystem::path& root) {
  const std::string boost = text_of(root / "sys/devices/system/cpu/cpufreq/boost");
  const std::string no_turbo = text_of(root / "sys/devices/system/cpu/intel_pstate/no_turbo");
  const bool on = boost == "1" || no_turbo == "0";
  if (boost.empty() && no_turbo.empty()) {
    return {.name = "boost", .value = kNotVisible, .advice = ""};
  }
  return {
      .name = "boost",
      .value = on ? "on" : "off",
      .advice =
          on ? "clocks follow temperature; arms share them within a block, so ratios hold, absolute times wander" : ""};
}

Finding smt(const std::filesystem::path& root) {
  const std::string active = text_of(root / "sys/devices/system/cpu/smt/active");
  return {.name = "SMT",
          .value = active.empty()  ? kNotVisible
                   : active == "1" ? "on"
                                   : "off",
          .advice = active == "1" ? "use one thread a physical core: --threads" : ""};
}

Finding load(const std::filesystem::path& root) {
  const std::string text = text_of(root / "proc/loadavg");
  const std::string first = text.substr(0, text.find(' '));
  if (first.empty()) {
    return {.name = "load", .value = kNotVisible, .advice = ""};
  }
  const bool busy = std::strtod(first.c_str(), nullptr) > kCalmLoad;
  return {.name = "load",
          .value = first + " over the last minute",
          .advice = busy ? "other work runs here; it widens every interval" : ""};
}

Finding throttling(const std::filesystem::path& root) {
  const auto events = throttle_events(root);
  if (!events) {
    return {.name = "throttling", .value = kNotVisible, .advice = ""};
  }
  return {.name = "throttling",
          .value = fmt::format("{} events since boot", *events),
          .advice = *events > 0 ? "the processor became too hot at times; see that it is cooled" : ""};
}

Finding quota(const std::filesystem::path& root) {
  const std::string limit = text_of(root / "sys/fs/cgroup/cpu.max");
  const bool limited = !limit.empty() && !limit.starts_with("max");
  return {.name = "core quota",
          .value = limit.empty() ? kNotVisible
                   : limited     ? limit + " us of quota and period"
                                 : "none",
          .advice = limited ? "the group is stopped when its quota is used up; raise it, or use fewer threads" : ""};
}

Finding huge_pages(const std::filesystem::path& root) {
  const std::string modes = text_of(root / "sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t begin = modes.find('[');
  const std::size_t end = modes.find(']');
  const bool known = begin != std::string::npos && end != std::string::npos;
  const std::string mode = known ? modes.substr(begin + 1, end - begin - 1) : kNotVisible;
  return {.name = "huge pages",
          .value = mode,
          .advice = mode == "never" ? "weights on small pages read slower: set it to madvise" : ""};
}

Finding memory(const std::filesystem::path& root) {
  try {
    const MemoryInfo info = parse_meminfo(text_of(root / "proc/meminfo"));
    return {.name = "memory",
            .value = fmt::format("{:.1f} of {:.1f} GB free", static_cast<double>(info.available_bytes) / 1e9,
                                 static_cast<double>(info.total_bytes) / 1e9),
            .advice = ""};
  } catch (const std::runtime_error&) {
    return {.name = "memory", .value = kNotVisible, .advice = ""};
  }
}

}  // namespace

std::optional<std::int64_t> throttle_events(const std::filesystem::path& root) {
  std::optional<std::int64_t> events;
  for (const auto& cpu : cpu_folders(root)) {
    for (const char* counter : {"core_throttle_count", "package_throttle_count"}) {
      if (const std::string text = text_of(cpu / "thermal_throttle" / counter); !text.empty()) {
        events = events.value_or(0) + std::strtoll(text.c_str(), nullptr, 10);
      }
    }
  }
  return events;
}

std::vector<Finding> examine_system(const std::filesystem::path& root) {
  return {governor(root),   boost(root), smt(root),        load(root),
          throttling(root), quota(root), huge_pages(root), memory(root)};
}

TimerCost measure_timer() {
  using Clock = std::chrono::steady_clock;
  constexpr int kCalls = 200'000;
  TimerCost cost{.call_ns = 0, .resolution_ns = std::numeric_limits<std::int64_t>::max()};
  const auto start = Clock::now();
  auto last = start;
  for (int call = 0; call < kCalls; ++call) {
    const auto now = Clock::now();
    if (now > last) {
      cost.resolution_ns = std::min<std::int64_t>(cost.resolution_ns, std::chrono::nanoseconds(now - last).count());
    }
    last = now;
  }
  cost.call_ns = static_cast<double>(std::chrono::nanoseconds(last - start).count()) / kCalls;
  return cost;
}

}  // namespace decodelab
