// Series over commits: what may stand in one, and where a step is found and where it is not.
#include "reports/statistics/history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/page/history/history_page.h"
#include "reports/statistics/labels.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;

HistorySeries series_of(const std::vector<double>& values, double deviation) {
  HistorySeries series;
  for (const double value : values) {
    HistoryPoint point;
    point.value = value;
    if (deviation > 0) {
      point.deviation = deviation;
    }
    series.points.push_back(point);
  }
  find_steps(series);
  return series;
}

std::string marks(const std::vector<double>& values, double deviation = 0.01) {
  std::string text;
  for (const HistoryPoint& point : series_of(values, deviation).points) {
    text += point.step ? 'S' : point.open ? '?' : '.';
  }
  return text;
}

TEST(History, FindsAStepThatTwoPointsHold) {
  EXPECT_EQ(marks({100, 101, 100, 110, 111, 110}), "...S..");
  EXPECT_EQ(marks({100, 100, 90, 90, 100, 100}), "..S.S.");
  EXPECT_EQ(marks({100, 110, 110}), ".S.");
}

TEST(History, CallsNoSinglePointAStep) {
  EXPECT_EQ(marks({100, 101, 120, 100, 101}), ".....") << "an outlier, and the level stays";
  EXPECT_EQ(marks({100, 101, 120}), "..?") << "the newest point may become one";
  EXPECT_EQ(marks({100, 120, 80, 100}), "....") << "two points on different sides";
}

TEST(History, IsQuietWithinThreeBlockDeviations) {
  EXPECT_EQ(marks({100, 102.9, 100, 97.1}), "....");
  EXPECT_EQ(marks({100, 103.1, 103.1}), ".S.");
  EXPECT_NEAR(series_of({100, 100}, 0.01).threshold, 0.03, 1e-12);
}

TEST(History, TakesEveryChangeOfACountThatStays) {
  EXPECT_EQ(marks({12, 12, 13, 13}, 0), "..S.");
  EXPECT_EQ(marks({0, 0, 1, 1}, 0), "..S.") << "a level of 0 has no share";
  EXPECT_EQ(marks({0, 0, 0}, 0), "...");
  EXPECT_EQ(marks({}, 0), "");
}

TEST(History, SaysByHowMuch) {
  const HistorySeries series = series_of({100, 100, 110, 110}, 0.01);
  EXPECT_EQ(series.points[0].change, std::nullopt);
  EXPECT_NEAR(*series.points[2].change, 0.10, 1e-12);
  EXPECT_NEAR(*series.points[3].change, 0, 1e-12) << "the level is the new one";
  EXPECT_EQ(series.steps(), 1);
}

/// Six commits, the last three 20 % slower, one run not finished and one on another machine.
std::vector<RunData> store() {
  std::vector<RunData> runs;
  for (std::int64_t i = 0; i < 8; ++i) {
    RunData data = testing::sample_run({.phases = {Phase::decode},
                                        .batches = {1},
                                        .lengths = {64, 128},
                                        .arms = {{"causal", i >= 3 ? 1.2 : 1.0}, {"bigcode", 0.7}},
                                        .seed = static_cast<std::uint64_t>(i + 1),
                                        .launch_noise = 0.002,
                                        .step_noise = 0.005,
                                        .with_failures = false});
    data.run.id = i + 1;
    data.run.started_unix_ns += i * 1'000'000'000;
    data.run.build.commit = fmt::format("commit{}", i);
    if (i == 6) {
      data.run.ended_unix_ns = 0;
    }
    if (i == 7) {
      data.run.machine.cpu = "Another processor";
    }
    for (CellArmRecord& row : data.cell_arms) {
      row.counters = {{"counted_steps", 4}, {"operators", i >= 3 ? 48 : 40}};
    }
    runs.push_back(std::move(data));
  }
  std::swap(runs[0], runs[5]);  // the order of a store is no order of time
  return runs;
}

TEST(History, FollowsEachCellAndMachineByItself) {
  const auto runs = store();
  const auto series = history_of(runs, {.metric = "mean_ns"});
  ASSERT_EQ(series.size(), 4U) << "two cells of the baseline, on two machines";
  EXPECT_EQ(series[0].arm, "causal");
  ASSERT_EQ(series[0].points.size(), 6U) << "the run that is not finished has no point";
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(series[0].points[i].run_id, static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_TRUE(series[0].points[3].step);
  EXPECT_NEAR(*series[0].points[3].change, 0.2, 0.02);
  EXPECT_EQ(series[0].steps(), 1);
  EXPECT_EQ(series[0].points[0].value, *summarize(runs[5]).rows[0].cell_mean_ns);
  EXPECT_EQ(series[2].machine, "Another processor, 8 cores");
  EXPECT_EQ(series[2].points.size(), 1U);
}

TEST(History, FollowsRatiosAndCounters) {
  const auto runs = store();
  const auto ratios = history_of(runs, {.metric = "time_ratio", .cell = cell_label(runs[0].cells[1])});
  ASSERT_EQ(ratios.size(), 2U);
  EXPECT_EQ(ratios[0].arm, "bigcode");
  EXPECT_EQ(ratios[0].cell.length, 128);
  EXPECT_NEAR(ratios[0].points[5].value, 0.7 / 1.2, 0.02);
  const auto counters = history_of(runs, {.metric = "counters.operators", .arm = "bigcode"});
  ASSERT_EQ(counters.size(), 4U);
  EXPECT_EQ(counters[0].points[3].value, 12);
  EXPECT_TRUE(counters[0].points[3].step);
  EXPECT_EQ(counters[0].threshold, 0);
}

TEST(History, NamesWhatThereIsWhereSomethingIsMisspelt) {
  const auto runs = store();
  EXPECT_TRUE(
      contains(message_of([&] { history_of(runs, {.metric = "mean"}); }), {"'mean'", "mean_ns", "counters.NAME"}));
  EXPECT_TRUE(contains(message_of([&] { history_of(runs, {.arm = "causl"}); }), {"--arm 'causl'", "bigcode, causal"}));
  EXPECT_TRUE(contains(message_of([&] { history_of(runs, {.cell = "b1 tg"}); }), {"--cell 'b1 tg'", "b1 tg @ d64"}));
}

TEST(History, LeavesOutWhatIsNoNumber) {
  auto runs = store();
  for (BlockRecord& block : runs[1].blocks) {
    block.other_cpu_share = std::numeric_limits<double>::quiet_NaN();
  }
  for (VisitRecord& visit : runs[2].blocks[0].visits) {
    std::ranges::fill(visit.samples_ns, 0);
  }
  const auto series = history_of(runs, {.metric = "time_ratio", .cell = "b1 tg @ d64"});
  for (const HistoryPoint& point : series[0].points) {
    EXPECT_TRUE(std::isfinite(point.value));
  }
}

TEST(HistoryPage, ShowsEveryPointAndMarksSteps) {
  const auto series = history_of(store(), {.metric = "mean_ns", .cell = "b1 tg @ d64"});
  const std::string text = to_text(history_table(series[0], "mean_ns"));
  EXPECT_TRUE(contains(text, {"commit3", "up", "AMD EPYC", "it may be a step"}));
  EXPECT_TRUE(contains(to_text(history_overview_table(series, "mean_ns")), {"commit3 (+2", "3 block deviations"}));
  const auto json = nlohmann::json::parse(history_to_json(series, "mean_ns"));
  EXPECT_EQ(json["points"].size(), 7U);
  EXPECT_EQ(json["points"][3]["step"], true);
  EXPECT_TRUE(contains(history_to_csv(series, "mean_ns"), {"arm,phase,batch", "causal,decode,1,64"}));
}

TEST(HistoryPage, IsWrittenAsAPageThatLoadsNothing) {
  const testing::TemporaryFolder folder;
  std::ostringstream warnings;
  auto runs = store();
  for (RunData& data : runs) {
    data.run.build.commit = "<script>'\"" + data.run.build.commit;
  }
  write_history(history_of(runs, {.metric = "mean_ns"}), "mean_ns", folder / "h", warnings);
  const std::string html = testing::read_file(folder / "h/history.html");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_TRUE(contains(html, {"&lt;script&gt;", "data-run=1 data-cell=1>", "History of mean_ns"}));
  EXPECT_TRUE(contains(testing::read_file(folder / "h/history.md"), {"# decodelab history", "figures/history.svg"}));
  EXPECT_TRUE(std::filesystem::exists(folder / "h/figures/history.vl.json"));
  write_history({}, "mean_ns", folder / "none", warnings);
  EXPECT_TRUE(contains(testing::read_file(folder / "none/history.html"), {"No finished run"}));
}

}  // namespace
}  // namespace decodelab
