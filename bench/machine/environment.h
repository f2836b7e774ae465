// What the machine is, how much memory is left for this process, and how much of its cores others use meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>

#include "reports/store/record.h"

namespace decodelab {

/// Returns the stable facts of this machine, from /proc, /etc/os-release and cpuid; `accelerator` is left empty, since
/// accelerators are not detected here.
///
/// `cores` are as many as usable_cores().
MachineRecord detect_machine();

/// Returns the cores that this process may use, ascending: those of the calling thread at the first call, or those of a
/// later bind_to_cores(). Call it before threads are bound to one core each; binding them changes no later result.
const std::vector<std::int64_t>& usable_cores();

/// Returns the core of each of `threads` threads: all usable cores, where there are as many as threads; else nothing,
/// and the system places the threads.
///
/// Threads without places migrate, and a process may stay on the slower side of a machine for its whole life: on a
/// shared 2-core machine the contrasts between launches of a build with itself spread by 14 %, and by 2.7 % with
/// places.
std::vector<std::int64_t> thread_places(std::int64_t threads);

/// Returns the cores of places such as `{0},{2}`, as WorkerProcess tells them to OpenMP; nothing for any other text.
std::vector<std::int64_t> cores_in_places(std::string_view places);

/// Returns the cores as a set for the system's calls. A number of CPU_SETSIZE or more, which the set cannot hold, is
/// left out.
cpu_set_t set_of_cores(const std::vector<std::int64_t>& cores);

/// Binds this thread, and every thread and process that it starts from now on, to these cores; does nothing for an
/// empty list. Throws std::invalid_argument for a core that is not there or that this process may not use.
void bind_to_cores(const std::vector<std::int64_t>& cores);

/// Returns the bytes that this process can still allocate before something refuses or kills it: the least of
/// MemAvailable, the headroom of its cgroups and that of RLIMIT_AS. Running out of memory on a CPU is SIGKILL and no
/// exception, so a cell is compared with this beforehand. Throws std::runtime_error where /proc/meminfo cannot be read.
std::int64_t available_memory_bytes();

/// Returns a function that returns the bytes that may be allocated at the time of its call, while a tenth of what is
/// available now stays free: what allocators keep for themselves and what other processes take meanwhile has to fit
/// too. Returns no function for a device other than `cpu`, where running out of memory is an exception.
std::function<std::int64_t()> memory_to_take(const std::string& device);

/// Nanoseconds since 1970, UTC, by a clock that may be set: for when something happened, never for how long it took.
std::int64_t unix_ns();

/// Bytes of memory that this process holds now (VmRSS), and the most it ever held (VmHWM). Both throw
/// std::runtime_error without /proc.
std::int64_t resident_bytes();
std::int64_t peak_resident_bytes();

struct MemoryInfo {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;  ///< Free, plus what the kernel would drop for a new allocation.
};

/// Reads the text of /proc/meminfo. Throws std::runtime_error naming a field that is missing or malformed.
MemoryInfo parse_meminfo(std::string_view text);

/// The bytes of one `Name:   123 kB` line of /proc/meminfo or /proc/self/status; nothing where there is no such line.
std::optional<std::int64_t> kilobyte_field(std::string_view text, std::string_view name);

/// "model name" of the first processor in the text of /proc/cpuinfo, or "unknown" (most ARM kernels do not tell).
std::string parse_cpu_model(std::string_view cpuinfo);

/// PRETTY_NAME in the text of /etc/os-release, or "Linux".
std::string parse_os_name(std::string_view os_release);

/// Limit minus usage of the tightest memory cgroup that this process is in; nothing where none is limited.
///
/// `root_path` is where cgroups are mounted (/sys/fs/cgroup) and `proc_self_cgroup` the text of /proc/self/cgroup.
/// Version 1, 2 and the hybrid of both are read, each with all its ancestors. Page cache that the kernel drops first
/// (inactive_file) is not usage. May be negative. In a container whose own folder is mounted as the root, folders named
/// by the text are absent and only the root counts.
std::optional<std::int64_t> cgroup_headroom(const std::filesystem::path& root_path, std::string_view proc_self_cgroup);

/// CPU times, all read at one moment.
struct CpuSnapshot {
  double busy_seconds = 0;  ///< user + nice + system + irq + softirq + steal of all cores since boot.
  double own_seconds = 0;   ///< User and system time of this process's threads, and of no other process.
  double wall_seconds = 0;
  std::int64_t cores = 0;  ///< Cores that are online, whether this process may use them or not.
};

/// `busy_seconds` and `cores` in the text of /proc/stat, whose numbers are in `ticks_per_second`. Throws
/// std::runtime_error if malformed.
CpuSnapshot parse_proc_stat(std::string_view text, double ticks_per_second);

/// Core seconds that other processes and the hypervisor used between two snapshots, never below 0.
double other_cpu_seconds_since(const CpuSnapshot& from, const CpuSnapshot& to);

/// Returns the same as a share, 0 to 1, of all core time that passed (wall time * cores); 0 where no time passed.
/// `ours_too` are core seconds that this process's own workers used meanwhile; they are not counted as others'.
double other_cpu_share(const CpuSnapshot& from, const CpuSnapshot& to, double ours_too = 0);

/// Measures what others use of the machine's cores from its start on.
///
/// The kernel counts in ticks of 10 ms a core, so a span of less than about a second is only roughly known. Processes
/// that this one started count as others.
class CpuClock final {
 public:
  /// Starts at once.
  CpuClock() : start_(now()) {}
  void restart() { start_ = now(); }

  double other_seconds() const { return other_cpu_seconds_since(start_, now()); }
  double other_share(double ours_too = 0) const { return other_cpu_share(start_, now(), ours_too); }

  static CpuSnapshot now();

 private:
  CpuSnapshot start_;
};

}  // namespace decodelab
