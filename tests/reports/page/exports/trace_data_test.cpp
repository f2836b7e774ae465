// The accounts of traces as CSV and JSON lines: every field of the store, and sums that a reader can check.
#include "reports/page/exports/trace_data.h"

#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/reports/contains.h"
#include "tests/reports/sample_run.h"
#include "tests/reports/sample_trace.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::sample_trace;

RunData traced_run() {
  RunData data = testing::sample_run({.phases = {Phase::decode},
                                      .batches = {1},
                                      .lengths = {64, 128},
                                      .arms = {{"causal"}, {"bigcode,+kv-pad:multiple=8", 0.7}},
                                      .launches = 1,
                                      .steps = 2,
                                      .with_failures = false});
  data.traces = {sample_trace(1, 1), sample_trace(1, 2, 0.5)};
  return data;
}

std::vector<std::map<std::string, std::string>> parsed(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  const auto fields_of = [](const std::string& text) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : text) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    return fields;
  };
  std::getline(lines, line);
  const auto header = fields_of(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const auto fields = fields_of(line);
    EXPECT_EQ(fields.size(), header.size()) << line;
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(fields.size(), header.size()); ++i) {
      row[header[i]] = fields[i];
    }
  }
  return rows;
}

TEST(TraceData, HasACsvLineForEveryShareWhoseTimesAddUpToTheSteps) {
  const RunData data = traced_run();
  const auto rows = parsed(traces_to_csv(data));
  ASSERT_EQ(rows.size(), 10U);
  std::map<std::string, std::int64_t> sums;
  for (const auto& row : rows) {
    sums[row.at("arm")] += std::stoll(row.at("host_ns"));
  }
  for (const auto& row : rows) {
    EXPECT_EQ(std::to_string(sums.at(row.at("arm"))), row.at("steps_ns"));
  }
  EXPECT_EQ(rows[0].at("arm"), "causal");
  EXPECT_EQ(rows[0].at("name"), "attention");
  EXPECT_EQ(rows[0].at("operators"), "640");
  EXPECT_EQ(rows[4].at("kind"), "residual");
  EXPECT_EQ(rows[5].at("arm"), "bigcode,+kv-pad:multiple=8");
  EXPECT_EQ(rows[5].at("host_ns"), "32000000");
  EXPECT_EQ(rows[5].at("perturbation_low"), "1.004");
}

TEST(TraceData, KeepsOneArmWhereOneIsNamed) {
  EXPECT_EQ(parsed(traces_to_csv(traced_run(), "causal")).size(), 5U);
  EXPECT_EQ(parsed(traces_to_csv(traced_run(), "flash")).size(), 0U);
}

TEST(TraceData, HasAJsonLineForEveryTraceAndNullForWhatWasNotMeasured) {
  RunData data = traced_run();
  data.traces[1].perturbation = data.traces[1].perturbation_low = data.traces[1].perturbation_high = 0;
  data.traces[1].verdict = "broken";
  data.traces[1].reason = "3 of 16 replays recorded";
  data.traces[1].shares.clear();
  std::istringstream lines(traces_to_jsonl(data));
  std::string line;
  std::getline(lines, line);
  const auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["run"], data.run.uuid);
  EXPECT_EQ(first["shares"].size(), 4U);
  EXPECT_EQ(first["shares"][0]["allocated_bytes"], 81'920);
  EXPECT_EQ(first["perturbation"], 1.012);
  EXPECT_TRUE(first["reason"].is_null());
  std::getline(lines, line);
  const auto second = nlohmann::json::parse(line);
  EXPECT_EQ(second["verdict"], "broken");
  EXPECT_EQ(second["reason"], "3 of 16 replays recorded");
  EXPECT_TRUE(second["shares"].empty());
  EXPECT_TRUE(second["perturbation"].is_null());
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(TraceData, OfARunWithoutTracesIsAHeaderAlone) {
  RunData data = traced_run();
  data.traces.clear();
  EXPECT_EQ(traces_to_jsonl(data), "");
  EXPECT_TRUE(contains(traces_to_csv(data), {"run,arm,phase", "kind,name,host_ns"}));
  EXPECT_EQ(parsed(traces_to_csv(data)).size(), 0U);
}

}  // namespace
}  // namespace decodelab
