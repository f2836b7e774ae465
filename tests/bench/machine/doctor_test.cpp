// A doctor reads what is there, says what is not, and gives advice only where something is wrong.
#include "bench/machine/doctor.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

class DoctorTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  Finding finding(const std::string& name) const {
    const auto findings = examine_system(root_);
    const auto found = std::ranges::find(findings, name, &Finding::name);
    return found == findings.end() ? Finding{} : *found;
  }

  testing::TemporaryFolder folder_;
  const std::filesystem::path& root_ = folder_.path();
};

TEST_F(DoctorTest, SaysWhatTheKernelDoesNotTell) {
  for (const Finding& one : examine_system(root_)) {
    EXPECT_EQ(one.value, "not visible") << one.name;
    EXPECT_EQ(one.advice, "") << one.name;
  }
  EXPECT_EQ(throttle_events(root_), std::nullopt);
}

TEST_F(DoctorTest, AdvisesWhereSomethingIsWrong) {
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance");
  write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3");
  write("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4");
  write("sys/devices/system/cpu/smt/active", "1");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  write("sys/fs/cgroup/cpu.max", "150000 100000");
  write("proc/loadavg", "2.50 1 1 1/100 4711");
  EXPECT_EQ(finding("governor").value, "performance, powersave");
  for (const char* name : {"governor", "throttling", "SMT", "huge pages", "core quota", "load"}) {
    EXPECT_NE(finding(name).advice, "") << name;
  }
  EXPECT_EQ(throttle_events(root_), 7);
}

TEST_F(DoctorTest, LeavesAMachineInOrderAlone) {
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
  write("sys/devices/system/cpu/cpufreq/boost", "0");
  write("sys/devices/system/cpu/smt/active", "0");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  write("sys/fs/cgroup/cpu.max", "max 100000");
  write("proc/loadavg", "0.10 1 1 1/100 4711");
  write("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 1000000 kB");
  for (const Finding& one : examine_system(root_)) {
    EXPECT_EQ(one.advice, "") << one.name << ": " << one.value;
  }
  EXPECT_EQ(finding("memory").value, "1.0 of 2.0 GB free");
}

TEST(Timer, CostsSomethingAndHasAResolution) {
  const TimerCost cost = measure_timer();
  EXPECT_GT(cost.call_ns, 0);
  EXPECT_LT(cost.call_ns, 1e6);
  EXPECT_GT(cost.resolution_ns, 0);
}

}  // namespace
}  // namespace decodelab
