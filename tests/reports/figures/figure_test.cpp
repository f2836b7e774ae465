// Figures hold every measured row, tell arms apart without colour, and stay small.
#include "reports/figures/figure.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "reports/figures/figure_style.h"
#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_run;
using testing::SampleOptions;

std::vector<std::string> names_of(const std::vector<Figure>& figures) {
  std::vector<std::string> names;
  for (const Figure& figure : figures) names.push_back(figure.name);
  return names;
}

std::vector<Figure> figures_of_run(const RunData& data) { return figures_of(summarize(data), data); }

TEST(Figure, ThereIsOneSetPerPhase) {
  EXPECT_EQ(names_of(figures_of_run(sample_run())),
            (std::vector<std::string>{"prefill-latency", "prefill-ratios", "prefill-steps", "decode-latency",
                                      "decode-ratios", "decode-steps"}));
}

TEST(Figure, SettingsOfOnePhaseAreNotMixed) {
  RunData data = sample_run();
  for (CellRecord& cell : data.cells) {
    if (cell.batch == 16) cell.dtype = "fp32";
  }
  const auto names = names_of(figures_of_run(data));
  EXPECT_EQ(std::count(names.begin(), names.end(), "decode-latency"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "decode-2-latency"), 1);
}

TEST(Figure, AnUnmeasuredRunHasNone) {
  RunData data = sample_run();
  data.blocks.clear();
  EXPECT_TRUE(figures_of_run(data).empty());
}

TEST(Figure, LatencyHasARowForEveryCellAndArmAndAPanelPerBatch) {
  const RunData data = sample_run();
  const auto figures = figures_of_run(data);
  const auto& spec = figures[3].spec;
  EXPECT_EQ(spec["$schema"], "https://vega.github.io/schema/vega-lite/v6.json");
  const auto& rows = spec["datasets"]["rows"];
  ASSERT_EQ(rows.size(), data.cells.size() / 2 * data.arms.size());
  EXPECT_EQ(spec["vconcat"].size(), 3U);                // curves, ratios, memory
  EXPECT_EQ(spec["vconcat"][0]["hconcat"].size(), 3U);  // batches 1, 4, 16
  const auto& row = rows[1];
  EXPECT_EQ(row["arm"], "bigcode");
  EXPECT_EQ(row["x"], 71.5);  // 16 steps from 64 keys on, drawn at their middle
  EXPECT_LT(row["low"].get<double>(), row["mean"].get<double>());
  EXPECT_LT(row["ratio_low"].get<double>(), row["ratio"].get<double>());
  EXPECT_FALSE(rows[0].contains("ratio"));  // the baseline
  EXPECT_EQ(rows[3]["status"], "unsupported");
  EXPECT_EQ(figures[3].data.rows.size(), rows.size() - 3);  // unsupported in three batches
}

TEST(Figure, MemoryIsDrawnOnlyWhereItIsKnown) {
  RunData data = sample_run();
  for (CellArmRecord& row : data.cell_arms) row.peak_bytes = std::nullopt;
  EXPECT_EQ(figures_of_run(data)[0].spec["vconcat"].size(), 2U);
}

TEST(Figure, RatiosNeedABaseline) {
  RunData data = sample_run();
  for (ArmRecord& arm : data.arms) arm.baseline = false;
  const auto figures = figures_of_run(data);
  EXPECT_EQ(names_of(figures),
            (std::vector<std::string>{"prefill-latency", "prefill-steps", "decode-latency", "decode-steps"}));
  EXPECT_EQ(figures[0].spec["vconcat"].size(), 2U);
}

TEST(Figure, CaptionsSayWhichIntervalsArePaired) {
  const auto figures = figures_of_run(sample_run());
  EXPECT_TRUE(contains(figures[0].caption, {"unpaired", "paired time ratios", "cross at the foot"}));
  EXPECT_TRUE(contains(figures[1].caption, {"paired within blocks", "80 % power"}));
}

TEST(Figure, ArmsDifferInMoreThanColour) {
  std::vector<ArmRecord> arms;
  for (std::int64_t i = 0; i < 12; ++i)
    arms.push_back({.id = i, .label = "arm" + std::to_string(i), .baseline = i == 0});
  const auto colors = arm_color(arms)["scale"]["range"];
  const auto shapes = arm_shape(arms)["scale"]["range"];
  std::set<std::pair<std::string, std::string>> looks;
  for (std::size_t i = 0; i < arms.size(); ++i) looks.emplace(colors[i], shapes[i]);
  EXPECT_EQ(looks.size(), arms.size());
  EXPECT_NE(shapes[1], shapes[2]);
}

TEST(Figure, StepsAreThinnedToWhatAPageCanAfford) {
  SampleOptions options;
  options.phases = {"decode"};
  options.batches = {1, 4};
  options.lengths = {64, 4096};
  options.steps = 64;
  options.with_failures = false;
  const auto figures = figures_of_run(sample_run(options));
  const Figure& steps = figures.back();
  EXPECT_EQ(steps.name, "decode-steps");
  EXPECT_TRUE(contains(steps.title, {"b4 tg @ d4096"}));
  EXPECT_LE(steps.spec["datasets"]["sequence"].size(), 480U);
  EXPECT_EQ(steps.spec["datasets"]["distribution"].size(), 400U);
  EXPECT_EQ(steps.data.rows.at(0).fields.at(1), "1280");
}

TEST(Figure, LengthsHaveTicksAtPowersOfTwo) {
  EXPECT_EQ(length_axis("x", {64, 509, 4093}, "t")["axis"]["values"],
            nlohmann::ordered_json({64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0}));
  EXPECT_EQ(logarithmic_ticks(9, 300), nlohmann::ordered_json({10.0, 20.0, 50.0, 100.0, 200.0}));
  EXPECT_EQ(shortened(0.1234567891), 0.123457);
}

}  // namespace
}  // namespace decodelab
