// Where the time went, in a line, in a table, in JSON and on the page.
#include "reports/page/tables/time_table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/page/exports/json.h"

namespace decodelab {
namespace {

RunSummary spent() {
  RunSummary summary;
  summary.run.id = 4;
  summary.arms = {{.id = 7, .label = "native"}, {.id = 8, .label = "peer"}};
  summary.times_spent = {{.launch = 0, .arm_id = 0, .activity = Activity::rest, .ns = 100'000'000},
                         {.launch = 0, .arm_id = 7, .activity = Activity::timing, .ns = 600'000'000},
                         {.launch = 0, .arm_id = 7, .activity = Activity::packing, .ns = 200'000'000},
                         {.launch = 1, .arm_id = 8, .activity = Activity::warming, .ns = 100'000'000}};
  return summary;
}

TEST(TimeTable, SaysInOneLineWhatARunIsForFirstAndThenTheLargest) {
  EXPECT_EQ(time_use_words(time_use(spent().times_spent)),
            "60.0 % timed steps, 10.0 % warm-up, 20.0 % packing weights, 10.0 % other work");
  EXPECT_EQ(time_use_words({}), "");
}

TEST(TimeTable, HasARowForEachArmAndTheWholeRun) {
  const Table table = time_table(spent());
  ASSERT_EQ(table.columns.size(), 2 + kActivities);
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[0].fields[0], "native");
  EXPECT_EQ(table.rows[0].fields[1], "0.8");
  EXPECT_EQ(table.rows[0].fields[2 + static_cast<std::size_t>(Activity::timing)], "75.0 %");
  EXPECT_EQ(table.rows[0].fields[2 + static_cast<std::size_t>(Activity::loading)], "");
  EXPECT_EQ(table.rows[2].fields[0], "shared by all arms");
  EXPECT_EQ(table.rows[3].fields[0], "the whole run");
  EXPECT_EQ(table.rows[3].fields[1], "1.0");
  EXPECT_TRUE(time_table({}).rows.empty()) << "of a run whose launches did not say";
}

TEST(TimeTable, StandsInTheJsonByLaunchArmAndActivity) {
  const auto times = summary_to_json(spent()).at("times_spent");
  ASSERT_EQ(times.size(), 4U);
  EXPECT_EQ(times[0].dump(), R"({"launch":0,"arm":null,"activity":"rest","ns":100000000})");
  EXPECT_EQ(times[3].dump(), R"({"launch":1,"arm":"peer","activity":"warming","ns":100000000})");
}

}  // namespace
}  // namespace decodelab
