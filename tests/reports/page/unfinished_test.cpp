// Rows that stayed `planned`, as in the run of a shard, are shown as what they are: not run, without figures or
// verdicts.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/page/exports/json.h"
#include "reports/page/tables/overview.h"
#include "reports/page/tables/result_tables.h"
#include "reports/statistics/summary.h"
#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

constexpr std::int64_t kCells = 3;

/// A run of which only the first `measured` cells were measured.
RunData shard_of_run(std::int64_t measured) {
  RunData data = sample_run({.phases = {Phase::decode},
                             .batches = {1},
                             .lengths = {64, 128, 256},
                             .arms = {{"causal"}, {"bigcode", 0.7}},
                             .launches = 12,
                             .blocks = 1,
                             .with_failures = false});
  std::erase_if(data.blocks, [&](const BlockRecord& block) { return block.cell_id > measured; });
  for (CellArmRecord& row : data.cell_arms) {
    if (row.cell_id > measured) {
      row = {.cell_id = row.cell_id, .arm_id = row.arm_id};
    }
  }
  return data;
}

TEST(Unfinished, RowsHaveNoTimesAndTheOthersNoVerdict) {
  const RunSummary whole = summarize(shard_of_run(kCells));
  EXPECT_EQ(whole.rows[1].decision.verdict, Verdict::faster);
  const RunSummary part = summarize(shard_of_run(2));
  for (const SummaryRow& row : part.rows) {
    EXPECT_EQ(row.decision.verdict, std::nullopt);
  }
  EXPECT_EQ(part.rows[1].decision.reason, "a part of the plan has not run");
  EXPECT_TRUE(part.rows[1].time_ratio.has_value()) << "what was measured is told";
  ASSERT_EQ(part.composites.size(), 1U);
  EXPECT_EQ(part.composites[0].decision.verdict, std::nullopt);
  const auto last = row_to_json(part.rows.back());
  EXPECT_EQ(last["status"], "planned");
  for (const char* key : {"median_ns", "time_ratio", "verdict", "counters"}) {
    EXPECT_TRUE(last[key].is_null() || last[key].empty()) << key;
  }
}

TEST(Unfinished, TablesSayWhatHasNotRun) {
  const RunData data = shard_of_run(2);
  const RunSummary part = summarize(data);
  EXPECT_TRUE(
      contains(to_text(comparison_tables(part).at(0)), {"not run", "No verdict: a part of the plan has not run"}));
  EXPECT_TRUE(contains(to_text(composite_table(part)), {"1 of 3 cells has not run"}));
  const auto badges = overview_of(data, part).badges;
  EXPECT_NE(std::ranges::find(badges, "2 rows not run"), badges.end());

  const RunData all = shard_of_run(kCells);
  EXPECT_FALSE(contains(to_text(composite_table(summarize(all))), {"not run"}));
  for (const std::string& badge : overview_of(all, summarize(all)).badges) {
    EXPECT_FALSE(contains(badge, {"not run"}));
  }
}

}  // namespace
}  // namespace decodelab
