// Adds times up, and subtracts side work from the activity during which it was done.
#include "bench/measure/time_account.h"

#include <algorithm>

namespace decodelab {

void TimeAccount::add(std::int64_t arm_id, Activity activity, std::int64_t ns) {
  spent_[{arm_id, activity}] += std::max<std::int64_t>(ns, 0);
}

std::int64_t TimeAccount::total_ns() const {
  std::int64_t total = 0;
  for (const auto& [key, ns] : spent_) {
    total += ns;
  }
  return total;
}

std::vector<TimeSpentRecord> TimeAccount::records(const std::string& shard, std::int64_t launch) const {
  std::vector<TimeSpentRecord> records;
  for (const auto& [key, ns] : spent_) {
    if (ns > 0) {
      records.push_back({.shard = shard, .launch = launch, .arm_id = key.first, .activity = key.second, .ns = ns});
    }
  }
  return records;
}

TimeSpan::TimeSpan(TimeAccount& account, std::int64_t arm_id, Activity activity, std::function<SideWork()> side)
    : account_(account),
      arm_id_(arm_id),
      activity_(activity),
      side_(std::move(side)),
      before_(side_ ? side_() : SideWork()) {}

TimeSpan::~TimeSpan() {
  const std::int64_t whole = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
  const SideWork after = side_ ? side_() : SideWork();
  const std::int64_t loading = after.loading_ns - before_.loading_ns;
  const std::int64_t packing = after.packing_ns - before_.packing_ns;
  const std::int64_t filling = after.filling_ns - before_.filling_ns;
  account_.add(arm_id_, Activity::loading, loading);
  account_.add(arm_id_, Activity::packing, packing);
  account_.add(arm_id_, Activity::filling, filling);
  account_.add(arm_id_, activity_, whole - loading - packing - filling);
}

}  // namespace decodelab
