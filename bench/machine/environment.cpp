// Reads the machine from /proc, /sys/fs/cgroup, cpuid and the limits of the process (Linux).
#include "bench/machine/environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

namespace decodelab {
namespace {

constexpr std::int64_t kKilobyte = 1024;
/// Version 1 writes "no limit" as the largest multiple of a page below 2^63; no machine has 2^60 bytes.
constexpr std::int64_t kNoLimitBytes = std::int64_t{1} << 60;

std::string required_file(const char* path) {
  if (std::optional<std::string> text = read_if_there(path)) {
    return *std::move(text);
  }
  throw std::runtime_error(fmt::format("{} cannot be read; expected a Linux machine with /proc mounted.", path));
}

/// Cuts the first line off `text` and returns it without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// Cuts the first word off `text`; empty at the end of the line.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

std::optional<std::int64_t> to_integer(std::string_view digits) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc{} && rest == digits.data() + digits.size();
  return whole ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> read_integer(const std::filesystem::path& path) {
  const std::optional<std::string> text = read_if_there(path);
  if (!text) {
    return std::nullopt;
  }
  std::string_view rest = *text;
  return to_integer(take_word(rest));
}

/// The number after `name` in a file of `name number` lines, such as memory.stat; 0 where it is absent.
std::int64_t stat_field(const std::filesystem::path& path, std::string_view name) {
  const std::string text = read_if_there(path).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take_line(rest);
    if (take_word(line) == name) {
      return to_integer(take_word(line)).value_or(0);
    }
  }
  return 0;
}

std::optional<std::int64_t> least(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

/// The files of one version of the memory controller.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* cache;  ///< Key in memory.stat that covers the folder and all below it.
};
constexpr CgroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr CgroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};

std::optional<std::int64_t> folder_headroom(const std::filesystem::path& folder, const CgroupFiles& files) {
  const std::optional<std::int64_t> limit = read_integer(folder / files.limit);  // "max" is no number: no limit.
  const std::optional<std::int64_t> usage = read_integer(folder / files.usage);
  if (!limit || !usage || *limit >= kNoLimitBytes) {
    return std::nullopt;
  }
  const std::int64_t cache = stat_field(folder / "memory.stat", files.cache);
  return *limit - std::max<std::int64_t>(*usage - cache, 0);
}

/// Returns the least headroom of `group` below `mount` and all its ancestors up to `mount` itself.
std::optional<std::int64_t> hierarchy_headroom(const std::filesystem::path& mount, std::string_view group,
                                               const CgroupFiles& files) {
  std::optional<std::int64_t> headroom;
  for (std::filesystem::path below(group.substr(std::min(group.find_first_not_of('/'), group.size())));;
       below = below.parent_path()) {
    headroom = least(headroom, folder_headroom(below.empty() ? mount : mount / below, files));
    if (below.empty()) {
      return headroom;
    }
  }
}

bool names_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") {
      return true;
    }
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

std::optional<std::int64_t> address_space_headroom() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  const auto bytes = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kNoLimitBytes));
  return bytes - kilobyte_field(required_file("/proc/self/status"), "VmSize").value_or(0);
}

std::int64_t own_status_bytes(std::string_view name) {
  const std::optional<std::int64_t> bytes = kilobyte_field(required_file("/proc/self/status"), name);
  if (!bytes) {
    throw std::runtime_error(fmt::format("/proc/self/status has no line {}; expected one, in kB.", name));
  }
  return *bytes;
}

std::vector<std::int64_t> cores_of_this_thread() {
  std::vector<std::int64_t> cores;
  // The kernel refuses a mask shorter than its own, so grow until it fits.
  for (std::size_t words = 16; words <= 4096; words *= 2) {
    std::vector<cpu_set_t> mask((words * sizeof(std::uint64_t) + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t));
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      for (std::size_t core = 0; core < 8 * bytes; ++core) {
        if (CPU_ISSET_S(core, bytes, mask.data())) {
          cores.push_back(static_cast<std::int64_t>(core));
        }
      }
      return cores;
    }
  }
  cores.resize(std::max(1U, std::thread::hardware_concurrency()));
  std::iota(cores.begin(), cores.end(), std::int64_t{0});
  return cores;
}

std::vector<std::int64_t>& remembered_cores() {
  static std::vector<std::int64_t> cores = cores_of_this_thread();
  return cores;
}

#if defined(__x86_64__)
std::string instruction_sets() {
  __builtin_cpu_init();
  const std::array<std::pair<const char*, bool>, 9> features = {{
      {"avx2", static_cast<bool>(__builtin_cpu_supports("avx2"))},
      {"fma", static_cast<bool>(__builtin_cpu_supports("fma"))},
      {"f16c", static_cast<bool>(__builtin_cpu_supports("f16c"))},
      {"avx512f", static_cast<bool>(__builtin_cpu_supports("avx512f"))},
      {"avx512bw", static_cast<bool>(__builtin_cpu_supports("avx512bw"))},
      {"avx512vl", static_cast<bool>(__builtin_cpu_supports("avx512vl"))},
      {"avx512vnni", static_cast<bool>(__builtin_cpu_supports("avx512vnni"))},
      {"avx512bf16", static_cast<bool>(__builtin_cpu_supports("avx512bf16"))},
      {"amx_bf16", static_cast<bool>(__builtin_cpu_supports("amx-bf16"))},
  }};
  std::string list;
  for (const auto& [name, present] : features) {
    if (present) {
      list += list.empty() ? name : std::string(" ") + name;
    }
  }
  return list;
}
#else
std::string instruction_sets() { return {}; }
#endif

bool is_core(std::int64_t core) { return core >= 0 && core < CPU_SETSIZE; }

}  // namespace

std::optional<std::int64_t> kilobyte_field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      line.remove_prefix(name.size() + 1);
      const std::optional<std::int64_t> kilobytes = to_integer(take_word(line));
      return kilobytes ? std::optional(*kilobytes * kKilobyte) : std::nullopt;
    }
  }
  return std::nullopt;
}

MemoryInfo parse_meminfo(std::string_view text) {
  const auto field = [text](const char* name) {
    const std::optional<std::int64_t> bytes = kilobyte_field(text, name);
    if (!bytes) {
      throw std::runtime_error(
          fmt::format("/proc/meminfo has no number in a line {}; expected one, in kB (Linux 3.14 or later).", name));
    }
    return *bytes;
  };
  return {.total_bytes = field("MemTotal"), .available_bytes = field("MemAvailable")};
}

std::string parse_cpu_model(std::string_view cpuinfo) {
  while (!cpuinfo.empty()) {
    const std::string_view line = take_line(cpuinfo);
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string_view::npos) {
      return std::string(line.substr(colon + 2));
    }
  }
  return "unknown";
}

std::string parse_os_name(std::string_view os_release) {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  while (!os_release.empty()) {
    std::string_view line = take_line(os_release);
    if (line.starts_with(kKey)) {
      line.remove_prefix(kKey.size());
      const bool quoted =
          line.size() >= 2 && line.front() == line.back() && (line.front() == '"' || line.front() == '\'');
      return std::string(quoted ? line.substr(1, line.size() - 2) : line);
    }
  }
  return "Linux";
}

std::optional<std::int64_t> cgroup_headroom(const std::filesystem::path& root_path, std::string_view proc_self_cgroup) {
  std::optional<std::int64_t> headroom;
  while (!proc_self_cgroup.empty()) {
    // hierarchy-ID:controller-list:path; the path may hold colons (cgroups(7)).
    const std::string_view line = take_line(proc_self_cgroup);
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) {
      headroom = least(headroom, hierarchy_headroom(root_path, group, kVersion2));
      headroom = least(headroom,
                       hierarchy_headroom(root_path / "unified", group, kVersion2));  // The hybrid layout of systemd.
    } else if (names_memory(controllers)) {
      headroom = least(headroom, hierarchy_headroom(root_path / "memory", group, kVersion1));
    }
  }
  return headroom;
}

std::int64_t available_memory_bytes() {
  const std::int64_t machine = parse_meminfo(required_file("/proc/meminfo")).available_bytes;
  const std::int64_t group =
      cgroup_headroom("/sys/fs/cgroup", read_if_there("/proc/self/cgroup").value_or("")).value_or(machine);
  const std::int64_t addresses = address_space_headroom().value_or(machine);
  return std::max<std::int64_t>(std::min({machine, group, addresses}), 0);
}

std::function<std::int64_t()> memory_to_take(const std::string& device) {
  constexpr std::int64_t kKeptFree = 10;
  if (device != "cpu") {
    return {};
  }
  return [kept = available_memory_bytes() / kKeptFree] { return available_memory_bytes() - kept; };
}

std::int64_t resident_bytes() { return own_status_bytes("VmRSS"); }
std::int64_t peak_resident_bytes() { return own_status_bytes("VmHWM"); }

MachineRecord detect_machine() {
  utsname kernel{};
  uname(&kernel);
  return {.cpu = parse_cpu_model(read_if_there("/proc/cpuinfo").value_or("")),
          .cores = std::ssize(usable_cores()),
          .memory_bytes = parse_meminfo(required_file("/proc/meminfo")).total_bytes,
          .isa = instruction_sets(),
          .os = fmt::format("{}, {} {}", parse_os_name(read_if_there("/etc/os-release").value_or("")), kernel.sysname,
                            kernel.release),
          .accelerator = ""};
}

CpuSnapshot parse_proc_stat(std::string_view text, double ticks_per_second) {
  CpuSnapshot snapshot;
  bool found = false;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::string_view name = take_word(line);
    if (name == "cpu") {
      // user nice system idle iowait irq softirq steal; guest time is already inside user (proc(5)).
      for (const bool busy : {true, true, true, false, false, true, true, true}) {
        const std::optional<std::int64_t> ticks = to_integer(take_word(line));
        if (!ticks) {
          throw std::runtime_error(
              "/proc/stat has a malformed line 'cpu'; expected at least 8 numbers (Linux 2.6.11 or later).");
        }
        snapshot.busy_seconds += busy ? static_cast<double>(*ticks) / ticks_per_second : 0.0;
      }
      found = true;
    } else if (name.size() > 3 && name.starts_with("cpu")) {
      ++snapshot.cores;
    }
  }
  if (!found || snapshot.cores == 0) {
    throw std::runtime_error(
        "/proc/stat has no line 'cpu' or no line 'cpu0'; expected a Linux machine with /proc mounted.");
  }
  return snapshot;
}

const std::vector<std::int64_t>& usable_cores() { return remembered_cores(); }

std::vector<std::int64_t> thread_places(std::int64_t threads) {
  return std::ssize(usable_cores()) == threads ? usable_cores() : std::vector<std::int64_t>();
}

std::vector<std::int64_t> cores_in_places(std::string_view places) {
  std::vector<std::int64_t> cores;
  while (places.starts_with('{')) {
    const std::size_t end = places.find('}');
    const auto core = end == std::string_view::npos ? std::nullopt : whole_number(places.substr(1, end - 1));
    const std::string_view behind = core ? places.substr(end + 1) : "";
    if (!core || (!behind.empty() && !behind.starts_with(",{"))) {
      return {};
    }
    cores.push_back(*core);
    places = behind.substr(behind.empty() ? 0 : 1);
  }
  return places.empty() ? cores : std::vector<std::int64_t>();
}

cpu_set_t set_of_cores(const std::vector<std::int64_t>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::int64_t core : cores) {
    if (is_core(core)) {
      CPU_SET(static_cast<std::size_t>(core), &set);
    }
  }
  return set;
}

void bind_to_cores(const std::vector<std::int64_t>& cores) {
  if (cores.empty()) {
    return;
  }
  if (const auto unknown = std::ranges::find_if_not(cores, is_core); unknown != cores.end()) {
    throw std::invalid_argument(fmt::format("there is no core {}", *unknown));
  }
  const cpu_set_t set = set_of_cores(cores);
  cpu_set_t bound;
  // The system drops cores that are not there, as long as one is left.
  if (sched_setaffinity(0, sizeof set, &set) != 0 || sched_getaffinity(0, sizeof bound, &bound) != 0 ||
      CPU_EQUAL(&set, &bound) == 0) {
    throw std::invalid_argument(
        fmt::format("this process cannot be bound to the cores {}: the machine has {}, of which it may use some",
                    fmt::join(cores, ","), sysconf(_SC_NPROCESSORS_ONLN)));
  }
  remembered_cores() = cores_of_this_thread();
}

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

CpuSnapshot CpuClock::now() {
  CpuSnapshot snapshot = parse_proc_stat(required_file("/proc/stat"), static_cast<double>(sysconf(_SC_CLK_TCK)));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  snapshot.own_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  snapshot.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return snapshot;
}

double other_cpu_seconds_since(const CpuSnapshot& from, const CpuSnapshot& to) {
  return std::max(0.0, (to.busy_seconds - from.busy_seconds) - (to.own_seconds - from.own_seconds));
}

double other_cpu_share(const CpuSnapshot& from, const CpuSnapshot& to, double ours_too) {
  const double core_seconds = (to.wall_seconds - from.wall_seconds) * static_cast<double>(to.cores);
  const double others = other_cpu_seconds_since(from, to) - ours_too;
  // Counters of the whole machine advance by ticks, own time by microseconds: a difference of less than two ticks may
  // be due to that alone.
  const double resolution = 2.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  return core_seconds > 0 && others >= resolution ? std::min(1.0, others / core_seconds) : 0.0;
}

}  // namespace decodelab
