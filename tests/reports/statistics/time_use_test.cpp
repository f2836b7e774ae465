// What launches spent adds up, in all and by arm.
#include "reports/statistics/time_use.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

const std::vector<TimeSpentRecord> kTimes{
    {.launch = 0, .arm_id = 0, .activity = Activity::rest, .ns = 10},
    {.launch = 0, .arm_id = 7, .activity = Activity::timing, .ns = 20},
    {.launch = 1, .arm_id = 7, .activity = Activity::timing, .ns = 30},
    {.launch = 1, .arm_id = 7, .activity = Activity::filling, .ns = 5},
    {.launch = 1, .arm_id = 3, .activity = Activity::timing, .ns = 1},
};

TEST(TimeUse, AddsUpAllLaunches) {
  TimeUse use = time_use(kTimes);
  EXPECT_EQ(use.of(Activity::timing), 51);
  EXPECT_EQ(use.of(Activity::packing), 0);
  EXPECT_EQ(use.total(), 66);
  use -= time_use({kTimes[1]});
  EXPECT_EQ(use.of(Activity::timing), 31);
  use += time_use({kTimes[1]});
  EXPECT_EQ(use.total(), 66);
}

TEST(TimeUse, IsGivenByArmInPlannedOrderAndLastOfNoSingleArm) {
  const std::vector<ArmTimeUse> uses =
      time_use_by_arm(kTimes, {{.id = 7, .label = "a"}, {.id = 5, .label = "idle"}, {.id = 3, .label = "b"}});
  ASSERT_EQ(uses.size(), 3U);
  EXPECT_EQ(uses[0].arm, "a");
  EXPECT_EQ(uses[0].use.total(), 55);
  EXPECT_EQ(uses[1].arm, "b");
  EXPECT_EQ(uses[2].arm, "");
  EXPECT_EQ(uses[2].use.of(Activity::rest), 10);
}

}  // namespace
}  // namespace decodelab
