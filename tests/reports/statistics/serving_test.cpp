// Rows of phase batching put together.
#include "reports/statistics/serving.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "reports/page/tables/batching_table.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

TEST(Servings, JoinWhatIsTimedOfOneBatchRateAndArm) {
  const RunSummary summary = summarize(testing::batching_run());
  const std::vector<Serving> servings = servings_of(summary);
  ASSERT_EQ(servings.size(), 4U * 3U);
  EXPECT_EQ(servings.front().request_rate, 0) << "all at once comes first";
  EXPECT_EQ(servings.back().request_rate, 8);
  for (const Serving& serving : servings) {
    ASSERT_TRUE(serving.tokens_per_second && serving.first_token_ns && serving.between_tokens_ns);
    EXPECT_GT(serving.first_token_ns->mean, serving.between_tokens_ns->mean);
    ASSERT_TRUE(serving.tokens_per_second->interval);
    EXPECT_LT(serving.tokens_per_second->interval->low, serving.tokens_per_second->mean);
    EXPECT_GT(serving.tokens_per_second->interval->high, serving.tokens_per_second->mean);
    EXPECT_EQ(serving.limits, (RequestLimits{.ttft_ms = 200, .tpot_ms = 50}));
    ASSERT_TRUE(serving.good_requests_per_second && serving.good_requests_per_second->interval);
  }
  const SummaryRow& row = *servings.front().row;
  EXPECT_NEAR(servings.front().tokens_per_second->mean, 1024 / (*row.cell_mean_ns * 1e-9), 1e-6);
}

TEST(Servings, AreNoneWithoutThePhase) { EXPECT_TRUE(servings_of(summarize(testing::sample_run())).empty()); }

TEST(BatchingTable, HasALineForEachServing) {
  const Table table = batching_table(summarize(testing::batching_run()));
  EXPECT_EQ(table.rows.size(), 12U);
  EXPECT_EQ(table.rows.front().fields[0], "b8 p128");
  EXPECT_EQ(table.rows.front().fields[1], "at once");
  EXPECT_EQ(table.rows.back().fields[1], "8/s");
  EXPECT_NE(table.rows.back().fields[3].find(" ± "), std::string::npos) << "with its interval";
  EXPECT_EQ(table.columns.back().name, "Good requests/s");
  EXPECT_TRUE(std::ranges::any_of(table.notes, [](const std::string& note) {
    return note.find("within TTFT 200 ms, TPOT 50 ms") != std::string::npos;
  }));
  EXPECT_TRUE(batching_table(summarize(testing::sample_run())).rows.empty());
}

}  // namespace
}  // namespace decodelab
