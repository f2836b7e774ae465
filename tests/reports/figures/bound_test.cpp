// The bound of a cell is the slower roofline of each launch, and its band what the launches saw.
#include "reports/figures/bound.h"

#include <gtest/gtest.h>

#include "reports/figures/figure.h"
#include "tests/reports/rich_run.h"

namespace decodelab {
namespace {

SummaryRow row_of(std::int64_t cell, const char* arm, std::vector<std::pair<std::int64_t, double>> launches) {
  SummaryRow row;
  row.cell.id = cell;
  row.cell.device = "cpu";
  row.cell.dtype = "bf16";
  row.arm.label = arm;
  row.launch_means_ns = std::move(launches);
  return row;
}

SummaryRow counted(std::int64_t cell, std::int64_t bytes, std::int64_t flops) {
  SummaryRow row = row_of(cell, "causal", {});
  row.counters = {{"counted_steps", 2},
                  {"modelled_weight_bytes", 2 * bytes - 10},
                  {"modelled_kv_bytes", 10},
                  {"modelled_flops", 2 * flops}};
  return row;
}

TEST(Bound, IsTheSlowerRooflineOfEachLaunch) {
  RunSummary summary;
  summary.rows = {row_of(1, kRooflineRead, {{0, 100}, {1, 140}}), row_of(1, kRooflineGemm, {{0, 120}, {1, 90}}),
                  counted(1, 1000, 50)};
  const auto bounds = bounds_of(summary);
  ASSERT_EQ(bounds.size(), 1U);
  EXPECT_EQ(bounds.at(1).low_ns, 120);
  EXPECT_EQ(bounds.at(1).high_ns, 140);
  EXPECT_EQ(bounds.at(1).bytes, 1000);
  EXPECT_EQ(bounds.at(1).flops, 50);
  EXPECT_FALSE(bounds.at(1).from_other_cells);
}

TEST(Bound, OfACellWithoutRooflinesComesFromTheSpeedsSeenInOthers) {
  RunSummary summary;
  summary.rows = {row_of(1, kRooflineRead, {{0, 100}, {1, 200}}), counted(1, 1000, 50), counted(2, 4000, 50)};
  const Bound bound = bounds_of(summary).at(2);
  EXPECT_TRUE(bound.from_other_cells);
  EXPECT_EQ(bound.low_ns, 400);   // 4000 bytes at 10 a nanosecond
  EXPECT_EQ(bound.high_ns, 800);  // and at 5
}

TEST(Bound, IsNoneWithoutRooflines) {
  RunSummary summary;
  summary.rows = {counted(1, 1000, 50)};
  EXPECT_TRUE(bounds_of(summary).empty());
}

TEST(Bound, CountsPerStepAreNoneWithoutTheirNumberOfSteps) {
  SummaryRow row = counted(1, 1000, 50);
  EXPECT_EQ(per_step(row, "modelled_flops"), 50);
  EXPECT_EQ(per_step(row, "op.aten::cat"), std::nullopt);
  row.counters.erase("counted_steps");
  EXPECT_EQ(per_step(row, "modelled_flops"), std::nullopt);
}

TEST(Bound, RooflinesAreNoArmsOfFigures) {
  const RunData data = testing::rich_run();
  for (const Figure& figure : figures_of(summarize(data), data)) {
    EXPECT_EQ(figure.spec.dump().find("roofline-"), std::string::npos) << figure.name;
  }
}

}  // namespace
}  // namespace decodelab
