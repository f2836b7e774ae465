// Tables of a run have the columns that its rows need.
#include "reports/page/tables/result_tables.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

SampleOptions one_cell(std::vector<testing::SampleArm> arms) {
  SampleOptions options;
  options.phases = {Phase::decode};
  options.batches = {1};
  options.lengths = {64};
  options.arms = std::move(arms);
  options.with_failures = false;
  return options;
}

TEST(ResultTables, ShowTheShareOfTheBoundWhereTheRunHasRooflines) {
  const RunData data = sample_run(one_cell({{"causal"}, {"bigcode", 0.8}, {kRooflineRead, 0.4}}));
  const Table table = comparison_tables(summarize(data)).front();
  const auto column = std::ranges::find(table.columns, "Of bound", &TableColumn::name) - table.columns.begin();
  ASSERT_LT(column, std::ssize(table.columns));
  const auto field = [&](std::size_t row) { return table.rows.at(row).fields.at(static_cast<std::size_t>(column)); };
  EXPECT_TRUE(contains(field(0), {"40 % [", "]"}));
  EXPECT_TRUE(contains(field(1), {"50 % [", "]"}));
  EXPECT_EQ(field(2), "") << "a roofline is the bound";
  for (const std::string& note : table.notes) {
    EXPECT_EQ(note.find("No ratio"), std::string::npos) << note;
  }
}

TEST(ResultTables, RankTheSwitchesOfAnAblationByTheirEffect) {
  RunData data = sample_run(one_cell({{"causal"}, {"causal,+a", 0.98}, {"causal,+b", 1.3}, {"causal,+c", 0.8}}));
  EXPECT_TRUE(effect_table(summarize(data)).rows.empty()) << "no ablation";
  data.run.plan_json = R"({"ablate": "add-one"})";
  const Table table = effect_table(summarize(data));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].fields[0], "causal,+b");
  EXPECT_EQ(table.rows[1].fields[0], "causal,+c");
  EXPECT_EQ(table.rows[2].fields[0], "causal,+a");
  EXPECT_TRUE(contains(table.rows[1].fields[1], {"0.", "[", "]"}));
  EXPECT_TRUE(contains(to_text(table), {"compared with causal", "Below 1: the arm is faster with the switch"}));
}

TEST(ResultTables, RankSwitchesOverAllCellsWhereThereAreSeveral) {
  SampleOptions options = one_cell({{"native"}, {"native,-a", 1.02}, {"native,-b", 1.5}});
  options.batches = {1, 4};
  RunData data = sample_run(options);
  data.run.plan_json = R"({"ablate": "leave-one-out"})";
  const Table table = effect_table(summarize(data));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].fields[0], "native,-b");
  EXPECT_TRUE(contains(to_text(table), {"Above 1: the arm is slower without the switch"}));
}

TEST(ResultTables, HaveNoSuchColumnWithoutRooflines) {
  const RunData data = sample_run(one_cell({{"causal"}, {"bigcode", 0.8}}));
  const Table table = comparison_tables(summarize(data)).front();
  EXPECT_EQ(std::ranges::find(table.columns, "Of bound", &TableColumn::name), table.columns.end());
}

}  // namespace
}  // namespace decodelab
