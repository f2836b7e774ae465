// Tables of a run have the columns that its rows need.
#include "reports/page/result_tables.h"

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
  options.phases = {"decode"};
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
  for (const std::string& note : table.notes) EXPECT_EQ(note.find("No ratio"), std::string::npos) << note;
}

TEST(ResultTables, HaveNoSuchColumnWithoutRooflines) {
  const RunData data = sample_run(one_cell({{"causal"}, {"bigcode", 0.8}}));
  const Table table = comparison_tables(summarize(data)).front();
  EXPECT_EQ(std::ranges::find(table.columns, "Of bound", &TableColumn::name), table.columns.end());
}

}  // namespace
}  // namespace decodelab
