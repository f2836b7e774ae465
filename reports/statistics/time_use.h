// What a run's launches spent their time on, added up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reports/store/record.h"

namespace decodelab {

/// Nanoseconds by activity.
struct TimeUse {
  std::array<std::int64_t, kActivities> ns{};

  std::int64_t of(Activity activity) const { return ns[static_cast<std::size_t>(activity)]; }
  std::int64_t total() const;
  TimeUse& operator+=(const TimeUse& other);
  TimeUse& operator-=(const TimeUse& other);
};

/// Adds up all these records.
TimeUse time_use(const std::vector<TimeSpentRecord>& times);

/// The time of one arm. time_use_by_arm() returns one for each arm that time was spent on, in planned order; a last one
/// with an empty label has the time of no single arm.
struct ArmTimeUse {
  std::string arm;
  TimeUse use;
};
std::vector<ArmTimeUse> time_use_by_arm(const std::vector<TimeSpentRecord>& times, const std::vector<ArmRecord>& arms);

}  // namespace decodelab
