// Figures hold every measured row, tell arms apart without colour, and stay small.
#include "reports/figures/figure.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "reports/figures/figure_style.h"
#include "tests/reports/contains.h"
#include "tests/reports/figures/named_figure.h"
#include "tests/reports/loss_run.h"
#include "tests/reports/rich_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::named;
using testing::sample_run;
using testing::SampleOptions;

std::vector<std::string> names_of(const std::vector<Figure>& figures) {
  std::vector<std::string> names;
  for (const Figure& figure : figures) {
    names.push_back(figure.name);
  }
  return names;
}

std::vector<Figure> figures_of_run(const RunData& data) { return figures_of(summarize(data), data); }

TEST(Figure, ThereIsOneSetPerPhaseInTheOrderOfTheTable) {
  const auto names = names_of(figures_of_run(sample_run()));
  EXPECT_EQ(names, (std::vector<std::string>{"prefill-ratios", "prefill-latency", "prefill-batches", "prefill-memory",
                                             "prefill-ablation", "prefill-speedup", "prefill-throughput",
                                             "prefill-steps", "prefill-order", "decode-ratios", "decode-latency",
                                             "decode-batches", "decode-memory", "decode-ablation", "decode-speedup",
                                             "decode-throughput", "decode-steps", "decode-order"}));
}

TEST(Figure, ARunWithTracesAndRooflinesHasEveryKind) {
  const auto names = names_of(figures_of_run(testing::rich_run()));
  for (const FigureKind& kind : figure_kinds()) {
    EXPECT_EQ(std::ranges::find(names, std::string("decode-") + kind.name) != names.end(),
              kind.phases != FigurePhases::batching && std::string(kind.name) != "prefix" &&
                  std::string(kind.name) != "top-tokens" && std::string(kind.name) != "loss")
        << kind.name;
  }
}

TEST(Figure, BatchesThatServeRequestsAreDrawnOverTheirLoad) {
  const std::vector<Figure> figures = figures_of_run(testing::batching_run());
  EXPECT_EQ(names_of(figures),
            (std::vector<std::string>{"batching-ratios", "batching-load", "batching-steps", "batching-order"}));
  const Figure& load = named(figures, "batching-load");
  EXPECT_EQ(load.data.rows.size(), 3U * 3U) << "three rates of three arms; what comes all at once has no rate";
  EXPECT_EQ(load.spec["vconcat"].size(), 1U);
  EXPECT_EQ(load.spec["vconcat"][0]["hconcat"].size(), 4U) << "a panel for each measure";

  testing::SampleOptions by_batch = testing::batching_options();
  by_batch.batching_scopes = {"served", "first-token", "between-tokens"};
  by_batch.batches = {4, 8};
  const std::vector<Figure> over_rows = figures_of_run(testing::sample_run(by_batch));
  EXPECT_NE(named(over_rows, "batching-load").caption.find("at once"), std::string::npos);
  by_batch.batches = {4};
  EXPECT_EQ(names_of(figures_of_run(testing::sample_run(by_batch))),
            (std::vector<std::string>{"batching-ratios", "batching-steps", "batching-order"}))
      << "one point is no line";
}

TEST(Figure, TimesOverTheShareOfAPrefixHaveALineForEachArm) {
  testing::SampleOptions options = testing::prefix_options();
  const Figure figure = named(figures_of_run(testing::sample_run(options)), "prefill-prefix");
  EXPECT_EQ(figure.data.rows.size(), 2U * 5U) << "an arm without a store is not there";
  EXPECT_EQ(figure.data.rows.front().fields[1], "native");
  EXPECT_EQ(figure.spec["vconcat"][0]["hconcat"].size(), 2U) << "a panel for each batch";
  std::set<std::string> lines;
  for (const auto& row : figure.spec["datasets"]["rows"]) {
    lines.insert(row["arm"]);
  }
  EXPECT_EQ(lines, (std::set<std::string>{"native", "native@samples=2"}));
  options.arms = {{"native@prefix=0.5", 1.0, 0.0}, {"causal", 1.2, 0.0}};
  const auto names = names_of(figures_of_run(testing::sample_run(options)));
  EXPECT_EQ(std::ranges::find(names, "prefill-prefix"), names.end()) << "one point is no line";
}

TEST(Figure, TimesOverTheTokensThatAreToldHaveALineForEachWayAndBeginWhereNoneAre) {
  const Figure figure = named(figures_of_run(testing::sample_run(testing::top_tokens_options())), "decode-top-tokens");
  EXPECT_EQ(figure.data.rows.size(), 5U);
  std::set<std::pair<std::string, double>> points;
  for (const auto& row : figure.spec["datasets"]["rows"]) {
    points.emplace(row["arm"], row["tokens"]);
  }
  EXPECT_EQ(points, (std::set<std::pair<std::string, double>>{
                        {"native", 0}, {"native", 5}, {"native", 20}, {"causal", 5}, {"causal", 20}}));
}

TEST(Figure, TimesOverLossesMarkTheArmsThatNoOtherBeatsInBoth) {
  const Figure figure = named(figures_of_run(testing::loss_run()), "decode-loss");
  EXPECT_EQ(figure.data.rows.size(), 2U * 4U) << "an arm without a quality is not there";
  EXPECT_EQ(figure.spec["vconcat"][0]["hconcat"].size(), 2U) << "a panel for each batch";
  std::set<std::string> best;
  for (const auto& row : figure.spec["datasets"]["rows"]) {
    if (row["best"]) {
      best.insert(row["arm"]);
    }
  }
  EXPECT_EQ(best, (std::set<std::string>{"native", "native,+int8-linear,-packed-linear",
                                         "native,+int4-linear,-packed-linear"}))
      << "libtorch's 4 bits are slower and lose more than ours";
}

TEST(Figure, NamesOfKindsAreUniqueSinceFilesAreCalledAfterThem) {
  std::set<std::string> names;
  for (const FigureKind& kind : figure_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  }
}

TEST(Figure, SettingsOfOnePhaseAreNotMixed) {
  RunData data = sample_run();
  for (CellRecord& cell : data.cells) {
    if (cell.batch == 16) {
      cell.dtype = "fp32";
    }
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
  const Figure& figure = named(figures, "decode-latency");
  const auto& spec = figure.spec;
  EXPECT_EQ(spec["$schema"], "https://vega.github.io/schema/vega-lite/v6.json");
  const auto& rows = spec["datasets"]["rows"];
  ASSERT_EQ(rows.size(), data.cells.size() / 2 * data.arms.size());
  EXPECT_EQ(spec["vconcat"].size(), 2U);                // curves, ratios
  EXPECT_EQ(spec["vconcat"][0]["hconcat"].size(), 3U);  // batches 1, 4, 16
  const auto& row = rows[1];
  EXPECT_EQ(row["arm"], "bigcode");
  EXPECT_EQ(row["x"], 71.5);  // 16 steps from 64 keys on, drawn at their middle
  EXPECT_LT(row["low"].get<double>(), row["mean"].get<double>());
  EXPECT_LT(row["ratio_low"].get<double>(), row["ratio"].get<double>());
  EXPECT_FALSE(rows[0].contains("ratio"));  // the baseline
  EXPECT_EQ(rows[3]["status"], "unsupported");
  EXPECT_EQ(figure.data.rows.size(), rows.size() - 3);  // unsupported in three batches
}

TEST(Figure, MemoryIsDrawnOnlyWhereItIsKnown) {
  RunData data = sample_run();
  for (CellArmRecord& row : data.cell_arms) {
    row.peak_bytes = std::nullopt;
  }
  const auto names = names_of(figures_of_run(data));
  EXPECT_EQ(std::ranges::find(names, "decode-memory"), names.end());
  EXPECT_NE(std::ranges::find(names, "decode-latency"), names.end());
}

TEST(Figure, RatiosNeedABaseline) {
  RunData data = sample_run();
  for (ArmRecord& arm : data.arms) {
    arm.baseline = false;
  }
  const auto figures = figures_of_run(data);
  const auto names = names_of(figures);
  for (const char* kind : {"decode-ratios", "decode-speedup", "decode-order", "decode-ablation"}) {
    EXPECT_EQ(std::ranges::find(names, kind), names.end()) << kind;
  }
  EXPECT_EQ(named(figures, "decode-latency").spec["vconcat"].size(), 1U);
}

TEST(Figure, CaptionsSayWhichIntervalsArePaired) {
  const auto figures = figures_of_run(sample_run());
  EXPECT_TRUE(
      contains(named(figures, "prefill-latency").caption, {"unpaired", "paired time ratios", "cross at the foot"}));
  EXPECT_TRUE(contains(named(figures, "prefill-ratios").caption, {"paired within blocks", "80 % power"}));
}

TEST(Figure, ASmoothedLineIsAddedAndReplacesNoPoint) {
  SampleOptions options;
  options.batches = {1};
  options.lengths = {16, 32, 64, 128, 256, 512};
  const RunData data = sample_run(options);
  const RunSummary summary = summarize(data);
  const auto layers_of = [&](bool smooth) {
    const Figure figure = named(figures_of(summary, data, smooth), "decode-latency");
    EXPECT_EQ(figure.caption.find("local regressions") != std::string::npos, smooth);
    return figure.spec.at("vconcat").at(0).at("hconcat").at(0).at("layer");
  };
  const nlohmann::ordered_json plain = layers_of(false);
  nlohmann::ordered_json smoothed = layers_of(true);
  ASSERT_EQ(smoothed.size(), plain.size() + 1);
  const auto is_regression = [](const nlohmann::ordered_json& layer) {
    return layer.dump().find("\"loess\"") != std::string::npos;
  };
  ASSERT_EQ(std::ranges::count_if(smoothed, is_regression), 1);
  smoothed.erase(std::ranges::find_if(smoothed, is_regression));
  EXPECT_EQ(smoothed, plain);
}

TEST(Figure, AStepOfADeviceIsWhatKeptItBusyAndItsGapsByCause) {
  RunData data = testing::rich_run();
  for (TraceRecord& trace : data.traces) {
    trace.steps = 2;
    trace.steps_ns = 2'000'000;
    trace.shares = {{.kind = "stage", .name = "attention", .host_ns = 1'800'000, .device_ns = 1'200'000},
                    {.kind = "gap", .name = "dispatch", .device_ns = 700'000}};
  }
  const Figure figure = named(figures_of_run(data), "decode-stages");
  EXPECT_TRUE(contains(figure.caption, {"Device time"}));
  std::map<std::string, double> of_first;
  const nlohmann::ordered_json& bars = figure.spec.at("datasets").at("stages");
  for (const nlohmann::ordered_json& bar : bars) {
    if (bar.at("arm") == bars[0].at("arm") && bar.at("label") == bars[0].at("label")) {
      of_first[bar.at("stage")] = bar.at("ms");
    }
  }
  EXPECT_EQ(of_first,
            (std::map<std::string, double>{{"attention", 0.6}, {"idle: dispatch", 0.35}, {"residual", 0.05}}));
}

TEST(Figure, ArmsDifferInMoreThanColour) {
  std::vector<ArmRecord> arms;
  for (std::int64_t i = 0; i < 12; ++i) {
    arms.push_back({.id = i, .label = "arm" + std::to_string(i), .baseline = i == 0});
  }
  const auto colors = arm_color(arms)["scale"]["range"];
  const auto shapes = arm_shape(arms)["scale"]["range"];
  std::set<std::pair<std::string, std::string>> looks;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    looks.emplace(colors[i], shapes[i]);
  }
  EXPECT_EQ(looks.size(), arms.size());
  EXPECT_NE(shapes[1], shapes[2]);
}

TEST(Figure, StepsAreThinnedToWhatAPageCanAfford) {
  SampleOptions options;
  options.phases = {Phase::decode};
  options.lengths.clear();
  for (std::int64_t i = 0; i < 25; ++i) {
    options.lengths.push_back(64 + i * 163);
  }
  options.steps = 64;
  options.with_failures = false;
  const auto figures = figures_of_run(sample_run(options));
  const Figure& steps = named(figures, "decode-steps");
  EXPECT_TRUE(contains(steps.caption, {"b16 tg @ d3976", "of 20 cells"}));
  const auto& sets = steps.spec["datasets"];
  EXPECT_EQ(sets["cells"].size(), 75U);
  EXPECT_EQ(sets["raw"].size(), 20U * 4);  // pinned cells by arms
  for (const auto& row : sets["raw"]) {
    EXPECT_EQ(row["ms"].size(), row["block"].size());
    EXPECT_LE(row["ms"].size() * row["every"].get<std::size_t>(), 1280U + row["every"].get<std::size_t>());
  }
  EXPECT_EQ(sets["quantiles"].size(), 300U);
  for (const auto& row : sets["quantiles"]) {
    EXPECT_LE(row["ms"].size(), 200U);
  }
  EXPECT_LT(sets.dump().size(), 300'000U);
  EXPECT_EQ(steps.data.rows.at(0).fields.at(2), "1280");
}

TEST(Figure, LengthsHaveTicksAtPowersOfTwo) {
  EXPECT_EQ(length_axis("x", {64, 509, 4093}, "t")["axis"]["values"],
            nlohmann::ordered_json({64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0}));
  EXPECT_EQ(logarithmic_ticks(9, 300), nlohmann::ordered_json({10.0, 20.0, 50.0, 100.0, 200.0}));
  EXPECT_EQ(shortened(0.1234567891), 0.123457);
}

}  // namespace
}  // namespace decodelab
