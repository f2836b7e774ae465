// Where the time of a launch goes: what each arm spends on loading, checking, filling, timing and the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// Cumulative nanoseconds of work that is done on the way to what was asked for: loading weights, packing them, and
/// filling caches.
struct SideWork {
  std::int64_t loading_ns = 0;
  std::int64_t packing_ns = 0;
  std::int64_t filling_ns = 0;

  bool operator==(const SideWork&) const = default;
};

/// Adds up what a launch spends, by arm and activity.
class TimeAccount {
 public:
  /// Adds a time; one below 0 counts as 0, since two clocks may differ by their resolution.
  void add(std::int64_t arm_id, Activity activity, std::int64_t ns);
  std::int64_t total_ns() const;
  /// Returns a record for each arm and activity whose time is not 0.
  std::vector<TimeSpentRecord> records(const std::string& shard, std::int64_t launch) const;

 private:
  std::map<std::pair<std::int64_t, Activity>, std::int64_t> spent_;
};

/// Adds its own lifetime to an account. The growth of `side` in that time is added to loading, packing and filling, and
/// the remainder to `activity`.
class TimeSpan {
 public:
  /// `side` may be empty; it and the account must outlive this.
  TimeSpan(TimeAccount& account, std::int64_t arm_id, Activity activity, std::function<SideWork()> side);
  ~TimeSpan();
  TimeSpan(const TimeSpan&) = delete;
  TimeSpan& operator=(const TimeSpan&) = delete;

 private:
  TimeAccount& account_;
  std::int64_t arm_id_;
  Activity activity_;
  std::function<SideWork()> side_;
  SideWork before_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace decodelab
