// What a launch spends is added up by arm and activity, and side work is taken out of what it was done in.
#include "bench/measure/time_account.h"

#include <chrono>
#include <map>
#include <thread>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

std::map<Activity, std::int64_t> of_arm(const TimeAccount& account, std::int64_t arm_id) {
  std::map<Activity, std::int64_t> spent;
  for (const TimeSpentRecord& time : account.records("", 0)) {
    if (time.arm_id == arm_id) {
      spent[time.activity] = time.ns;
    }
  }
  return spent;
}

TEST(TimeAccount, AddsUpByArmAndActivityAndLeavesOutWhatIsNothing) {
  TimeAccount account;
  account.add(1, Activity::timing, 5);
  account.add(1, Activity::timing, 6);
  account.add(2, Activity::timing, 7);
  account.add(2, Activity::filling, 0);
  account.add(2, Activity::warming, -3);
  EXPECT_EQ(account.total_ns(), 18);
  EXPECT_EQ(account.records("1/2", 4),
            (std::vector<TimeSpentRecord>{
                {.shard = "1/2", .launch = 4, .arm_id = 1, .activity = Activity::timing, .ns = 11},
                {.shard = "1/2", .launch = 4, .arm_id = 2, .activity = Activity::timing, .ns = 7}}));
}

TEST(TimeSpan, GivesSideWorkToItsOwnActivityAndTheRemainderToItsOwn) {
  TimeAccount account;
  SideWork side{.loading_ns = 100, .packing_ns = 100, .filling_ns = 100};
  {
    const TimeSpan span(account, 3, Activity::checking, [&] { return side; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    side.packing_ns += 4'000'000;
    side.filling_ns += 5'000'000;
  }
  auto spent = of_arm(account, 3);
  EXPECT_EQ(spent[Activity::packing], 4'000'000);
  EXPECT_EQ(spent[Activity::filling], 5'000'000);
  EXPECT_FALSE(spent.contains(Activity::loading)) << "what was done before is not its own";
  EXPECT_GE(spent[Activity::checking], 11'000'000);
}

TEST(TimeSpan, CountsWorkThatThrew) {
  TimeAccount account;
  try {
    const TimeSpan span(account, 0, Activity::starting, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    throw 1;
  } catch (int) {
  }
  EXPECT_GE(of_arm(account, 0)[Activity::starting], 5'000'000);
}

}  // namespace
}  // namespace decodelab
