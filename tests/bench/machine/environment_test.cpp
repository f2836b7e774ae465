// Tests that the machine's texts are read right, on made-up files and, within bounds, on this machine.
#include "bench/machine/environment.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

/// A folder with made-up cgroup files, removed at the end of the test.
class CgroupTree : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  const std::filesystem::path& root() const { return root_; }

 private:
  testing::TemporaryFolder folder_;
  const std::filesystem::path& root_ = folder_.path();
};

TEST_F(CgroupTree, HasNoHeadroomToTellWithoutALimit) {
  write("a/memory.max", "max\n");
  write("a/memory.current", "100\n");
  EXPECT_EQ(cgroup_headroom(root(), "0::/a\n"), std::nullopt);
  EXPECT_EQ(cgroup_headroom(root(), ""), std::nullopt);
  EXPECT_EQ(cgroup_headroom(root(), "malformed\n0:half\n"), std::nullopt);
}

TEST_F(CgroupTree, OfVersion2SubtractsUsageWithoutTheDroppableCache) {
  write("a/memory.max", "1000\n");
  write("a/memory.current", "600\n");
  write("a/memory.stat", "anon 300\nfile 300\ninactive_file 200\nactive_file 100\n");
  EXPECT_EQ(cgroup_headroom(root(), "0::/a\n"), 600);
}

TEST_F(CgroupTree, OfVersion2IsAsTightAsItsTightestAncestor) {
  write("a/memory.max", "1000\n");
  write("a/memory.current", "900\n");
  write("a/b/memory.max", "800\n");
  write("a/b/memory.current", "100\n");
  EXPECT_EQ(cgroup_headroom(root(), "0::/a/b\n"), 100);
}

TEST_F(CgroupTree, OfVersion1ReadsItsOwnFiles) {
  write("memory/job/memory.limit_in_bytes", "5000\n");
  write("memory/job/memory.usage_in_bytes", "3000\n");
  write("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  EXPECT_EQ(cgroup_headroom(root(), "4:cpuset,memory:/job\n2:cpu:/\n0::/\n"), 2500);
}

TEST_F(CgroupTree, OfVersion1KnowsTheNumberThatMeansNoLimit) {
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/memory.usage_in_bytes", "3000\n");
  EXPECT_EQ(cgroup_headroom(root(), "4:memory:/\n"), std::nullopt);
}

TEST_F(CgroupTree, CountsTheRootWhereTheNamedFolderIsHiddenByAContainer) {
  write("memory.max", "700\n");
  write("memory.current", "200\n");
  EXPECT_EQ(cgroup_headroom(root(), "0::/docker/0123\n"), 500);
}

TEST_F(CgroupTree, IsNegativeWhereUsageIsPastTheLimit) {
  write("memory.max", "100\n");
  write("memory.current", "300\n");
  EXPECT_EQ(cgroup_headroom(root(), "0::/\n"), -200);
}

TEST(Environment, ReadsTotalAndAvailableMemory) {
  const MemoryInfo info = parse_meminfo("MemTotal:       24684092 kB\nMemFree:  5 kB\nMemAvailable:   100 kB\n");
  EXPECT_EQ(info.total_bytes, 24684092LL * 1024);
  EXPECT_EQ(info.available_bytes, 102400);
}

TEST(Environment, NamesTheMemoryFieldThatIsMissing) {
  try {
    parse_meminfo("MemTotal: 10 kB\nMemFree: 5 kB\n");
    FAIL() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("MemAvailable"), std::string::npos) << error.what();
  }
  EXPECT_THROW(parse_meminfo("MemTotal: many kB\nMemAvailable: 5 kB\n"), std::runtime_error);
}

TEST(Environment, ReadsAFieldByItsWholeName) {
  EXPECT_EQ(kilobyte_field("VmRSSX: 1 kB\nVmRSS:\t  2 kB", "VmRSS"), 2048);
  EXPECT_EQ(kilobyte_field("VmRSSX: 1 kB\n", "VmRSS"), std::nullopt);
}

TEST(Environment, ReadsTheModelOfTheFirstProcessor) {
  EXPECT_EQ(parse_cpu_model("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC: big\nmodel name\t: other\n"),
            "AMD EPYC: big");
  EXPECT_EQ(parse_cpu_model("processor : 0\nCPU part : 0xd0c\n"), "unknown");
}

TEST(Environment, ReadsTheNameOfTheSystemWithoutQuotes) {
  EXPECT_EQ(parse_os_name("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"), "Debian GNU/Linux 12");
  EXPECT_EQ(parse_os_name("PRETTY_NAME=Alpine\n"), "Alpine");
  EXPECT_EQ(parse_os_name("ID=x\n"), "Linux");
}

TEST(Environment, DescribesThisMachine) {
  const MachineRecord machine = detect_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_GE(machine.cores, 1);
  EXPECT_LE(machine.cores, CpuClock::now().cores);
  EXPECT_GT(machine.memory_bytes, 64 * kMegabyte);
  EXPECT_NE(machine.os.find("Linux"), std::string::npos);
  EXPECT_TRUE(machine.accelerator.empty());
}

TEST(Environment, ListsTheInstructionSetsThatTheKernelLists) {
  std::ifstream file("/proc/cpuinfo");
  std::string flags = " ";
  for (std::string line; std::getline(file, line) && flags == " ";) {
    flags = line.starts_with("flags") ? line.append(" ") : flags;
  }
  if (flags == " ") {
    GTEST_SKIP() << "/proc/cpuinfo has no line flags: not an x86 machine";
  }
  const std::string isa = " " + detect_machine().isa + " ";
  for (const std::string name : {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "amx_bf16"}) {
    const std::string word = " " + name + " ";
    EXPECT_EQ(isa.find(word) != std::string::npos, flags.find(word) != std::string::npos) << name << " in" << isa;
  }
}

TEST(Environment, SeesNoMoreMemoryThanTheMachineHas) {
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), detect_machine().memory_bytes);
}

TEST(Environment, SeesALimitOfTheAddressSpace) {
  const pid_t child = fork();
  if (child == 0) {
    std::ifstream file("/proc/self/status");
    const std::string status(std::istreambuf_iterator<char>(file), {});
    const auto size = static_cast<rlim_t>(kilobyte_field(status, "VmSize").value());
    const rlimit limit = {size + 64 * kMegabyte, RLIM_INFINITY};
    const bool set = setrlimit(RLIMIT_AS, &limit) == 0;
    _exit(set && available_memory_bytes() > 0 && available_memory_bytes() <= 64 * kMegabyte ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Environment, SeesItsOwnMemoryGrow) {
  const std::int64_t before = resident_bytes();
  const std::vector<char> block(64 * kMegabyte, 1);
  EXPECT_GE(resident_bytes(), before + 60 * kMegabyte) << static_cast<int>(block.back());
  EXPECT_GE(peak_resident_bytes(), before + 60 * kMegabyte);
}

TEST(CpuClock, AddsBusyTicksOfAllCoresWithoutIdleAndGuestTime) {
  const CpuSnapshot snapshot =
      parse_proc_stat("cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 0\nintr 5\n", 100);
  EXPECT_DOUBLE_EQ(snapshot.busy_seconds, 0.63);
  EXPECT_EQ(snapshot.cores, 2);
}

TEST(CpuClock, RefusesATextThatIsNotProcStat) {
  EXPECT_THROW(parse_proc_stat("", 100), std::runtime_error);
  EXPECT_THROW(parse_proc_stat("cpu 1 2 3\ncpu0 1\n", 100), std::runtime_error);
  EXPECT_THROW(parse_proc_stat("intr 5\n", 100), std::runtime_error);
}

TEST(CpuClock, GivesOthersWhatItDidNotUseItself) {
  const CpuSnapshot from = {.busy_seconds = 10, .own_seconds = 2, .wall_seconds = 100, .cores = 4};
  const CpuSnapshot to = {.busy_seconds = 18, .own_seconds = 8, .wall_seconds = 102, .cores = 4};
  EXPECT_DOUBLE_EQ(other_cpu_seconds_since(from, to), 2.0);
  EXPECT_DOUBLE_EQ(other_cpu_share(from, to), 0.25);
}

TEST(CpuClock, NeverGivesOthersLessThanNothing) {
  const CpuSnapshot from = {.busy_seconds = 10, .own_seconds = 2, .wall_seconds = 100, .cores = 1};
  const CpuSnapshot to = {.busy_seconds = 10.99, .own_seconds = 3, .wall_seconds = 101, .cores = 1};
  EXPECT_EQ(other_cpu_share(from, to), 0.0) << "the ticks lag behind the process's own clock";
  EXPECT_EQ(other_cpu_share(from, from), 0.0);
}

TEST(Environment, GivesEachThreadACoreWhereThereAreAsManyAsThreads) {
  const std::vector<std::int64_t> cores = usable_cores();
  const auto count = std::ssize(cores);
  ASSERT_GE(count, 1);
  EXPECT_EQ(thread_places(count), cores);
  EXPECT_TRUE(thread_places(count + 1).empty());
  EXPECT_EQ(detect_machine().cores, count);
  // In a thread of its own, for a binding is not taken back.
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cores.back()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cores(), cores) << "where a thread runs is no limit of the process";
  }).join();
}

TEST(CpuClock, SeesAnotherProcessSpin) {
  CpuClock clock;
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<std::int64_t> slices = 0;  // A plain loop without an effect may be taken to end.
    while (true) {
      ++slices;
    }
  }
  clock.restart();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double seconds = clock.other_seconds();
  const double share = clock.other_share();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  // A fifth of a core: the child shares its core with whatever else runs here.
  EXPECT_GT(seconds, 0.1);
  EXPECT_GT(share, 0.0);
  EXPECT_LE(share, 1.0);
}

TEST(CoresInPlaces, AreThoseThatAWorkerWasGiven) {
  EXPECT_EQ(cores_in_places("{0},{12}"), (std::vector<std::int64_t>{0, 12}));
  EXPECT_EQ(cores_in_places("{3}"), std::vector<std::int64_t>{3});
  for (const char* other : {"", "cores", "{0:4}", "{0,1}", "{0}x", "{0", "{}"}) {
    EXPECT_TRUE(cores_in_places(other).empty()) << other;
  }
}

}  // namespace
}  // namespace decodelab
