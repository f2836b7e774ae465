// JSON, JSON lines and CSV carry every row with the documented keys.
#include "reports/page/exports/json.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::lines_of;
using testing::sample_run;
using testing::SampleOptions;

TEST(Json, HasTheDocumentedKeysInTheirOrder) {
  const auto json = nlohmann::ordered_json::parse(to_json(summarize(sample_run())));
  std::vector<std::string> top;
  for (const auto& [key, value] : json.items()) {
    top.push_back(key);
  }
  EXPECT_EQ(top, (std::vector<std::string>{"schema_version", "run", "machine", "rows", "composites", "interval_level",
                                           "times_spent"}));
  std::string keys;
  for (const auto& [key, value] : json["rows"][0].items()) {
    keys += key + " ";
  }
  EXPECT_EQ(keys,
            "arm model phase scope batch length dtype device threads status reason engaged launches blocks steps "
            "turn_steps warmup median_ns mean_ns min_ns max_ns "
            "p90_ns p95_ns p99_ns time_ratio time_ratio_low time_ratio_high speedup mde verdict bound_share peak_bytes "
            "flags counters verdict_reason p_t p_sign_flip p_family bound_share_low bound_share_high "
            "slot_effect carry_over ties logit_error kl_divergence top_1_agreement launch_ratios quality ");
}

TEST(Json, HasEveryRowWithItsNumbers) {
  const RunSummary summary = summarize(sample_run());
  const auto json = nlohmann::json::parse(to_json(summary));
  ASSERT_EQ(json["rows"].size(), summary.rows.size());
  for (std::size_t i = 0; i < summary.rows.size(); ++i) {
    const auto& row = json["rows"][i];
    EXPECT_EQ(row["arm"], summary.rows[i].arm.label);
    EXPECT_EQ(row["median_ns"].is_null(), !summary.rows[i].median_ns);
    ASSERT_EQ(row["time_ratio"].is_null(), !summary.rows[i].time_ratio);
    EXPECT_DOUBLE_EQ(row.value("time_ratio", nlohmann::json()).is_null() ? 0 : row["time_ratio"].get<double>(),
                     summary.rows[i].time_ratio.value_or(0));
    EXPECT_TRUE(row["counters"].is_object());
    EXPECT_TRUE(row["flags"].is_array());
    EXPECT_TRUE(row["verdict"].is_null());
    EXPECT_TRUE(row["p99_ns"].is_null());
  }
}

TEST(Json, HasNullForAnythingUnknownOfARowThatDidNotRun) {
  const auto json = nlohmann::json::parse(to_json(summarize(sample_run())));
  const auto row =
      *std::find_if(json["rows"].begin(), json["rows"].end(), [](const auto& r) { return r["status"] == "oom"; });
  for (const char* key : {"median_ns", "mean_ns", "time_ratio", "speedup", "mde", "engaged", "peak_bytes"}) {
    EXPECT_TRUE(row[key].is_null()) << key;
  }
  EXPECT_EQ(row["reason"], "needs 71.2 GiB, 60.1 GiB are available");
}

TEST(Json, SurvivesBytesThatAreNoUtf8) {
  RunData data = sample_run();
  data.run.model.name = "bad\xff name";
  EXPECT_EQ(nlohmann::json::parse(to_json(summarize(data)))["run"]["model"]["name"], "bad\xef\xbf\xbd name");
}

TEST(Json, LinesCarryTheRunSoThatFilesCanBeJoined) {
  const RunSummary summary = summarize(sample_run());
  const auto lines = lines_of(to_jsonl(summary));
  ASSERT_EQ(lines.size(), summary.rows.size());
  const auto line = nlohmann::json::parse(lines.back());
  EXPECT_EQ(line["run"], summary.run.uuid);
  EXPECT_EQ(line["arm"], summary.rows.back().arm.label);
}

/// Fields of a line of CSV: a comma between quotes belongs to its field.
std::size_t fields_of(const std::string& line) {
  bool quoted = false;
  std::size_t fields = 1;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    }
    if (c == ',' && !quoted) {
      ++fields;
    }
  }
  return fields;
}

TEST(Csv, HasALineForEveryRowWithAsManyFieldsAsItsHeader) {
  SampleOptions options;
  options.arms = {{"causal"}, {"bigcode", 0.7}};
  options.with_failures = false;
  RunSummary summary = summarize(sample_run(options));
  summary.rows[0].flags = {"a", "b"};
  const auto lines = lines_of(to_csv(summary));
  ASSERT_EQ(lines.size(), summary.rows.size() + 1);
  for (const std::string& line : lines) {
    EXPECT_EQ(fields_of(line), fields_of(lines[0])) << line;
  }
  EXPECT_TRUE(lines[0].starts_with("run,arm,model,phase,"));
  EXPECT_TRUE(contains(lines[1], {"causal", "prefill", ",a b,{}"}));
}

TEST(Csv, HasALineForEveryVisit) {
  const RunData data = sample_run();
  std::size_t visits = 0;
  for (const BlockRecord& block : data.blocks) {
    visits += block.visits.size();
  }
  const auto lines = lines_of(blocks_to_csv(data));
  ASSERT_EQ(lines.size(), visits + 1);
  EXPECT_TRUE(contains(lines[0], {"run,launch,block,cell_id", "previous_arm", "visit_mean_ns"}));
  EXPECT_TRUE(contains(lines[3], {"\"bigcode,+fused-layer-norm\""}));
}

}  // namespace
}  // namespace decodelab
