// The JSON of google-benchmark: what its readers look for, and numbers that are ours.
#include "reports/page/history/google_benchmark.h"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/statistics/estimates.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using nlohmann::json;
using testing::contains;
using testing::message_of;
using testing::sample_run;
using testing::SampleOptions;

const SampleOptions kSmall{.phases = {Phase::decode},
                           .batches = {1, 4},
                           .lengths = {64},
                           .arms = {{"causal"}, {"bigcode", 0.7}},
                           .launches = 2,
                           .blocks = 1,
                           .with_failures = false};

TEST(GoogleBenchmark, HasARepetitionForEachVisitWithWhatReadersLookFor) {
  const RunData data = sample_run(
      {.phases = {Phase::decode}, .batches = {1}, .lengths = {64}, .launches = 2, .blocks = 1, .with_failures = false});
  const json whole = json::parse(to_google_benchmark(data, ""));
  EXPECT_EQ(whole["context"]["json_schema_version"], 1);
  std::size_t iterations = 0;
  std::set<std::string> names;
  for (const json& entry : whole["benchmarks"]) {
    for (const char* key : {"name", "run_name", "run_type", "repetitions", "iterations", "real_time", "cpu_time",
                            "time_unit", "family_index", "per_family_instance_index"}) {
      EXPECT_TRUE(entry.contains(key)) << key;
    }
    EXPECT_EQ(entry["time_unit"], "ns");
    EXPECT_GT(entry["real_time"].get<double>(), 0);
    EXPECT_EQ(entry["repetitions"], 4) << "two launches of a block in which an arm visits twice";
    if (entry["run_type"] != "iteration") {
      continue;
    }
    EXPECT_EQ(entry["name"], entry["run_name"]);
    EXPECT_EQ(entry["repetition_index"], iterations++ % 4);
    EXPECT_EQ(entry["iterations"], 16);
    names.insert(entry["name"]);
  }
  EXPECT_EQ(iterations, 4 * data.arms.size());
  EXPECT_EQ(names.size(), data.arms.size());
  EXPECT_TRUE(names.contains("decode/batch:1/length:64/causal"));
}

TEST(GoogleBenchmark, TakesTheVisitStatisticAndAggregatesIt) {
  const RunData data = sample_run(kSmall);
  const json entries = json::parse(to_google_benchmark(data, "causal"))["benchmarks"];
  std::vector<double> times;
  for (const BlockRecord& block : data.blocks) {
    for (const VisitRecord& visit : block.visits) {
      if (visit.arm_id == 1 && block.cell_id == 1) {
        times.push_back(visit_statistic(visit.samples_ns));
      }
    }
  }
  ASSERT_EQ(times.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(entries[i]["real_time"].get<double>(), times[i]);
  }
  EXPECT_EQ(entries[4]["aggregate_name"], "mean");
  EXPECT_EQ(entries[4]["name"], "decode/batch:1/length:64_mean");
  EXPECT_DOUBLE_EQ(entries[4]["real_time"].get<double>(), mean(times));
  std::ranges::sort(times);
  EXPECT_DOUBLE_EQ(entries[5]["real_time"].get<double>(), (times[1] + times[2]) / 2);
  EXPECT_EQ(entries[7]["aggregate_unit"], "percentage");
}

TEST(GoogleBenchmark, OfOneArmHasNamesThatAnotherArmHasToo) {
  const RunData data = sample_run(kSmall);
  const json first = json::parse(to_google_benchmark(data, "causal"))["benchmarks"];
  const json second = json::parse(to_google_benchmark(data, "bigcode"))["benchmarks"];
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i]["name"], second[i]["name"]);
  }
  EXPECT_NE(first[0]["real_time"], second[0]["real_time"]);
  EXPECT_TRUE(contains(message_of([&] { to_google_benchmark(data, "flash"); }), {"flash", "causal, bigcode"}));
}

TEST(GoogleBenchmark, NamesRowsWithoutTimesAndGivesThemNoEntry) {
  RunData data = sample_run(kSmall);
  std::erase_if(data.blocks, [](const BlockRecord& block) { return block.cell_id == 2; });
  const json whole = json::parse(to_google_benchmark(data, ""));
  EXPECT_EQ(whole["context"]["not_measured"],
            (json{"decode/batch:4/length:64/causal", "decode/batch:4/length:64/bigcode"}));
  EXPECT_EQ(whole["benchmarks"].size(), 2 * (4 + 4U));
}

}  // namespace
}  // namespace decodelab
