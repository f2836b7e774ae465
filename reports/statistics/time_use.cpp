// Sums of what launches spent.
#include "reports/statistics/time_use.h"

#include <map>
#include <numeric>

namespace decodelab {
namespace {

TimeUse& add(TimeUse& use, const TimeSpentRecord& time) {
  use.ns[static_cast<std::size_t>(time.activity)] += time.ns;
  return use;
}

}  // namespace

std::int64_t TimeUse::total() const { return std::accumulate(ns.begin(), ns.end(), std::int64_t{0}); }

TimeUse& TimeUse::operator+=(const TimeUse& other) {
  for (std::size_t i = 0; i < ns.size(); ++i) {
    ns[i] += other.ns[i];
  }
  return *this;
}

TimeUse& TimeUse::operator-=(const TimeUse& other) {
  for (std::size_t i = 0; i < ns.size(); ++i) {
    ns[i] -= other.ns[i];
  }
  return *this;
}

TimeUse time_use(const std::vector<TimeSpentRecord>& times) {
  TimeUse use;
  for (const TimeSpentRecord& time : times) {
    add(use, time);
  }
  return use;
}

std::vector<ArmTimeUse> time_use_by_arm(const std::vector<TimeSpentRecord>& times, const std::vector<ArmRecord>& arms) {
  std::map<std::int64_t, TimeUse> by_id;
  for (const TimeSpentRecord& time : times) {
    add(by_id[time.arm_id], time);
  }
  std::vector<ArmTimeUse> uses;
  for (const ArmRecord& arm : arms) {
    if (const auto found = by_id.find(arm.id); found != by_id.end()) {
      uses.push_back({arm.label, found->second});
    }
  }
  if (const auto found = by_id.find(0); found != by_id.end()) {
    uses.push_back({"", found->second});
  }
  return uses;
}

}  // namespace decodelab
