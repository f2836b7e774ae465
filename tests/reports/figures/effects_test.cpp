// Effects over several cells count the same cells for every arm, and switches are compared with the arm that they were
// put on.
#include "reports/figures/effects.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "reports/figures/figure.h"
#include "reports/figures/moved_counters.h"
#include "tests/reports/contains.h"
#include "tests/reports/figures/named_figure.h"
#include "tests/reports/rich_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::named;
using testing::rich_run;

// Without noise, factors are exact.
RunData exact_run(std::vector<testing::SampleArm> arms) {
  testing::SampleOptions options;
  options.phases = {Phase::decode};
  options.batches = {1, 4};
  options.lengths = {64, 512};
  options.arms = std::move(arms);
  options.launch_noise = 0;
  options.step_noise = 0;
  options.with_failures = false;
  return testing::sample_run(options);
}

std::vector<const SummaryRow*> rows_of(const RunSummary& summary) {
  std::vector<const SummaryRow*> rows;
  for (const SummaryRow& row : summary.rows) {
    rows.push_back(&row);
  }
  return rows;
}

TEST(Effects, AreMeansOverTheCellsThatEveryArmHas) {
  RunData data = exact_run({{"causal"}, {"fast", 0.5}, {"slow", 2.0}});
  // One cell of `slow` is missing: it counts for no arm.
  for (BlockRecord& block : data.blocks) {
    if (block.cell_id == 4) {
      std::erase_if(block.visits, [](const VisitRecord& visit) { return visit.arm_id == 3; });
    }
  }
  const RunSummary summary = summarize(data);
  const ArmEffects effects = arm_effects(rows_of(summary));
  EXPECT_EQ(effects.cells.size(), 3U);
  EXPECT_NEAR(ratio_of(effects.logs.at("fast"))->time_ratio, 0.5, 1e-6);
  EXPECT_NEAR(ratio_of(difference(effects.logs.at("slow"), effects.logs.at("fast")))->time_ratio, 4, 1e-5);
  EXPECT_EQ(ratio_of(effects.logs.at("causal"))->time_ratio, 1);
}

TEST(Effects, AnArmWithFewCellsDoesNotTakeThemFromTheOthers) {
  RunData data = exact_run({{"causal"}, {"fast", 0.5}, {"rare", 0.7}});
  for (BlockRecord& block : data.blocks) {
    if (block.cell_id != 1) {
      std::erase_if(block.visits, [](const VisitRecord& visit) { return visit.arm_id == 3; });
    }
  }
  const RunSummary summary = summarize(data);
  const ArmEffects effects = arm_effects(rows_of(summary));
  EXPECT_EQ(effects.cells.size(), 4U);
  EXPECT_EQ(effects.left_out, std::vector<std::string>{"rare"});
}

TEST(Effects, LabelsComeApartAtSwitchesOnly) {
  const ArmParts parts = arm_parts("bigcode,+kv-pad:multiple=8,grow=2,-fused");
  EXPECT_EQ(parts.base, "bigcode");
  EXPECT_EQ(parts.switches, (std::vector<std::string>{"+kv-pad:multiple=8,grow=2", "-fused"}));
  EXPECT_TRUE(arm_parts("native").switches.empty());
}

TEST(Ablation, ComparesASwitchWithTheArmThatItWasPutOnAndNamesInteractions) {
  // Alone 0.9 and 0.8, together 0.6 instead of 0.72; presets are 0.5 and 0.25 of the baseline.
  const RunData data =
      exact_run({{"causal"}, {"mid", 0.5}, {"mid,+a", 0.45}, {"mid,+b", 0.4}, {"mid,+a,+b", 0.3}, {"native", 0.25}});
  const auto figures = figures_of(summarize(data), data);
  const Figure& figure = named(figures, "decode-ablation");
  const auto& bars = figure.spec["datasets"]["switches"];
  ASSERT_EQ(bars.size(), 3U);
  EXPECT_EQ(bars[0]["arm"], "mid,+a,+b");  // the largest first
  EXPECT_NEAR(bars[0]["ratio"].get<double>(), 0.6, 1e-4);
  EXPECT_NEAR(bars[0]["predicted"].get<double>(), 0.72, 1e-4);
  EXPECT_NEAR(bars[1]["ratio"].get<double>(), 0.8, 1e-4);
  const auto& presets = figure.spec["datasets"]["presets"];
  ASSERT_EQ(presets.size(), 2U);
  EXPECT_NEAR(presets[1]["from"].get<double>(), 0.5, 1e-4);
  EXPECT_NEAR(presets[1]["to"].get<double>(), 0.25, 1e-4);
  EXPECT_NEAR(presets[1]["ratio"].get<double>(), 0.5, 1e-4);
  EXPECT_TRUE(contains(figure.caption, {"they interact", "0.8333"}));
}

TEST(Speedup, RefersToAnotherEngineWhereOneWasMeasured) {
  RunData data = exact_run({{"causal"}, {"native", 0.25}, {"peer", 0.5}});
  data.arms[2].command = "peer-worker";
  const auto figures = figures_of(summarize(data), data);
  const Figure& figure = named(figures, "decode-speedup");
  for (const auto& cell : figure.spec["datasets"]["cells"]) {
    EXPECT_EQ(cell["reference"], "peer");
  }
  const auto& cells = figure.spec["datasets"]["cells"];
  ASSERT_EQ(cells.size(), 8U);
  EXPECT_EQ(cells[0]["arm"], "causal");
  EXPECT_NEAR(cells[0]["speedup"].get<double>(), 0.5, 1e-4);
  EXPECT_NEAR(cells[4]["speedup"].get<double>(), 2, 1e-4);
  EXPECT_FALSE(contains(figure.caption, {"no other engine"}));
}

TEST(Waterfall, StepsAddUpToTheDifference) {
  const RunData data = rich_run();
  const auto figures = figures_of(summarize(data), data);
  const Figure& figure = named(figures, "decode-waterfall");
  std::map<std::string, std::vector<nlohmann::ordered_json>> bars;
  for (const auto& bar : figure.spec["datasets"]["steps"]) {
    bars[bar["arm"]].push_back(bar);
  }
  ASSERT_EQ(bars.size(), 2U);  // bigcode and native against causal
  for (const auto& [arm, of_arm] : bars) {
    EXPECT_TRUE(of_arm.front()["total"].get<bool>() && of_arm.back()["total"].get<bool>());
    double at = of_arm.front()["to"].get<double>();
    bool residual = false;
    for (std::size_t i = 1; i + 1 < of_arm.size(); ++i) {
      EXPECT_NEAR(of_arm[i]["from"].get<double>(), at, 1e-3) << arm;
      at = of_arm[i]["to"].get<double>();
      residual = residual || of_arm[i]["column"] == "residual";
    }
    EXPECT_NEAR(at, of_arm.back()["to"].get<double>(), 1e-3) << arm;
    EXPECT_TRUE(residual);
  }
}

TEST(Stages, AddUpToTheTracedStep) {
  const RunData data = rich_run();
  const auto figures = figures_of(summarize(data), data);
  std::map<std::string, double> shares;
  for (const auto& bar : named(figures, "decode-stages").spec["datasets"]["stages"]) {
    shares[bar["arm"]] += bar["share"].get<double>();
  }
  ASSERT_EQ(shares.size(), 3U);
  for (const auto& [arm, share] : shares) {
    EXPECT_NEAR(share, 1, 1e-4) << arm;
  }
}

TEST(MovedCounters, TellTheLargestChangesFirstAndNothingWithoutCounters) {
  SummaryRow baseline;
  SummaryRow row;
  EXPECT_EQ(moved_counters(baseline, row), "");
  baseline.counters = {{"counted_steps", 2}, {"operators", 200}, {"allocations", 100}, {"allocated_bytes", 4096}};
  row.counters = {{"counted_steps", 4}, {"operators", 396}, {"allocations", 100}};
  EXPECT_EQ(moved_counters(baseline, row), "allocated 2.000 KiB \xe2\x86\x92 0 B, allocations 50 \xe2\x86\x92 25");
  EXPECT_EQ(moved_counters(baseline, baseline), "");
}

}  // namespace
}  // namespace decodelab
