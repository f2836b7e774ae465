// A policy reads back as it was written, and what is wrong with a file is said in one sentence.
#include "reports/statistics/gate_policy.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;

std::string refusal(const std::string& json) {
  return message_of([&] { parse_gate_policy(json, "gate.json"); });
}

CellRecord cell_of(Phase phase, std::int64_t batch, std::int64_t length) {
  return {.id = 1, .phase = phase, .batch = batch, .length = length, .dtype = "fp32", .device = "cpu", .threads = 2};
}

TEST(GatePolicy, HasTheDefaultsOfTheDesign) {
  const GatePolicy policy = parse_gate_policy("{}", "gate.json");
  EXPECT_EQ(policy.margin_of(cell_of(Phase::decode, 1, 64)), 0.03);
  EXPECT_EQ(policy.margin_of(cell_of(Phase::prefill, 1, 64)), 0.05);
  EXPECT_EQ(policy.composite_margin, 0.015);
  EXPECT_EQ(policy.looks.looks, (std::vector<std::size_t>{6, 10, 16, 24}));
  EXPECT_EQ(policy.looks.level, 0.018);
  EXPECT_EQ(policy.looks.family_level, 0.0157);
  EXPECT_EQ(policy.on_inconclusive, OnInconclusive::report);
  EXPECT_EQ(policy.time_budget_s, std::nullopt);
  EXPECT_TRUE(looks_caution(policy).empty());
}

TEST(GatePolicy, ReadsBackWhatItWrites) {
  const std::string text = R"({
    "margins": {"decode": 0.02, "composite": 0.01},
    "overrides": [{"phase": "decode", "batch": 4, "margin": 0.1}, {"length": 64, "margin": 0.2}],
    "composite_weights": "cell", "looks": [7, 12], "level": 0.01, "family_level": 0.009, "void_share": 0.3, "most_void": 0.1,
    "fresh_blocks": 0, "on_inconclusive": "fail", "time_budget_s": 90})";
  const GatePolicy policy = parse_gate_policy(text, "gate.json");
  EXPECT_EQ(policy.decode_margin, 0.02);
  EXPECT_EQ(policy.prefill_margin, 0.05) << "what is not given keeps its default";
  EXPECT_EQ(policy.time_budget_s, 90);
  EXPECT_EQ(policy.fresh_blocks, 0U);
  const std::string written = to_json(policy);
  EXPECT_EQ(to_json(parse_gate_policy(written, "gate.json")), written);
  EXPECT_NE(written, to_json(GatePolicy{}));
  for (const PolicyKey& key : gate_policy_keys()) {
    EXPECT_TRUE(contains(written, {"\"" + key.name.substr(key.name.find('.') + 1) + "\""}));
    EXPECT_FALSE(key.meaning.empty() || key.expected.empty()) << key.name;
  }
}

TEST(GatePolicy, LetsTheLastOverrideThatMatchesHold) {
  const GatePolicy policy = parse_gate_policy(
      R"({"overrides": [{"phase": "decode", "margin": 0.1}, {"batch": 4, "length": 64, "margin": 0.2}]})", "gate.json");
  EXPECT_EQ(policy.margin_of(cell_of(Phase::decode, 1, 64)), 0.1);
  EXPECT_EQ(policy.margin_of(cell_of(Phase::decode, 4, 64)), 0.2);
  EXPECT_EQ(policy.margin_of(cell_of(Phase::decode, 4, 128)), 0.1);
  EXPECT_EQ(policy.margin_of(cell_of(Phase::prefill, 4, 64)), 0.2);
  EXPECT_EQ(policy.margin_of(cell_of(Phase::prefill, 1, 64)), 0.05);
}

TEST(GatePolicy, NamesAnUnknownKeyAndTheNearestKnownOne) {
  EXPECT_TRUE(contains(refusal(R"({"margin": {}})"), {"gate.json", "\"margin\"", "'margins'", "on_inconclusive"}));
  EXPECT_TRUE(contains(refusal(R"({"margins": {"decod": 0.03}})"), {"\"margins.decod\"", "'decode'", "prefill"}));
  EXPECT_TRUE(contains(refusal(R"({"overrides": [{"margin": 0.1, "bach": 1}]})"), {"overrides[0].bach", "'batch'"}));
  const std::string hostile = refusal("{\"\\u001b[2J" + std::string(10'000, 'x') + "\": 1}");
  EXPECT_LT(hostile.size(), 600U);
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos);
}

TEST(GatePolicy, SaysWhatAValueMustBe) {
  struct Wrong {
    const char* json;
    const char* key;
    const char* expected;
  };
  const Wrong cases[] = {
      {R"([])", "the policy", "an object"},
      {R"({"margins": 3})", "'margins'", "an object with the keys decode"},
      {R"({"margins": {"decode": 3}})", "'margins.decode'", "0.03 for 3 %"},
      {R"({"margins": {"decode": "3 %"}})", "'margins.decode'", "a share"},
      {R"({"margins": {"prefill": -0.1}})", "'margins.prefill'", "a share"},
      {R"({"margins": {"composite": null}})", "'margins.composite'", "a share"},
      {R"({"looks": 6})", "'looks'", "ascending"},
      {R"({"looks": []})", "'looks'", "ascending"},
      {R"({"looks": [6, 6]})", "'looks'", "ascending"},
      {R"({"looks": [6, 6.5]})", "'looks[1]'", "whole numbers"},
      {R"({"looks": [6, 18446744073709551615]})", "'looks[1]'", "whole numbers"},
      {R"({"looks": [5, 10]})", "'looks'", "takes 6 gate blocks"},
      {R"({"level": 0})", "'level'", "above 0"},
      {R"({"level": 0.2})", "'level'", "at most 0.05"},
      {R"({"level": 0.001})", "'looks'", "takes 10 gate blocks"},
      {R"({"family_level": 0.015})", "'looks'", "takes 7 gate blocks"},
      {R"({"family_level": "0.01"})", "'family_level'", "above 0"},
      {R"({"void_share": 2})", "'void_share'", "from 0 to 1"},
      {R"({"most_void": 0.9})", "'most_void'", "from 0 to 0.5"},
      {R"({"fresh_blocks": -1})", "'fresh_blocks'", "from 0 to 64"},
      {R"({"fresh_blocks": 5})", "'fresh_blocks'", "0, or at least the first look (6)"},
      {R"({"on_inconclusive": "ignore"})", "'on_inconclusive'", "report, pass, fail"},
      {R"({"composite_weights": 1})", "'composite_weights'", "phase-then-batch, cell"},
      {R"({"time_budget_s": 0})", "'time_budget_s'", "seconds above 0"},
      {R"({"time_budget_s": "10m"})", "'time_budget_s'", "seconds above 0"},
      {R"({"schema_version": 2})", "'schema_version'", "the only version"},
      {R"({"overrides": {}})", "'overrides'", "a list"},
      {R"({"overrides": [{}]})", "'overrides[0]'", "with a margin"},
      {R"({"overrides": [{"margin": 0.1, "phase": "decoding"}]})", "'overrides[0].phase'", "one of prefill, decode"},
      {R"({"overrides": [{"margin": 0.1, "batch": 0}]})", "'overrides[0].batch'", "a whole number from 1"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_TRUE(contains(refusal(wrong.json), {"gate.json: ", wrong.key, wrong.expected, "got "})) << wrong.json;
  }
  for (const char* text : {"", "{", "{\"looks\": [1e999]}", "// no"}) {
    EXPECT_TRUE(contains(refusal(text), {"gate.json: ", "JSON"})) << text;
  }
}

TEST(GatePolicy, HashOfThePlanIsThatOfThePolicyAndTheCellsInAnyOrder) {
  GatePolicy policy;
  policy.fresh_blocks = 6;  // the default of stored plans
  std::vector<CellRecord> cells{cell_of(Phase::decode, 1, 64), cell_of(Phase::prefill, 1, 64)};
  const std::string hash = gate_plan_hash(policy, cells);
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash, "4f7e60d522270881") << "stored plans were hashed like this: a change makes all of them invalid";
  cells[0].id = 77;
  cells[0].steps = 16;
  std::swap(cells[0], cells[1]);
  EXPECT_EQ(gate_plan_hash(policy, cells), hash);
  GatePolicy other = policy;
  other.decode_margin = 0.031;
  EXPECT_NE(gate_plan_hash(other, cells), hash);
  cells[0].threads = 3;
  EXPECT_NE(gate_plan_hash(policy, cells), hash);
  cells.pop_back();
  EXPECT_NE(gate_plan_hash(policy, cells), hash);
}

TEST(GatePolicy, WarnsOfLooksWhoseFalseAlarmsNobodyCounted) {
  EXPECT_TRUE(
      contains(looks_caution(parse_gate_policy(R"({"looks": [6, 7, 8, 9]})", "x")), {"4 looks at 0.018", "7.2 %"}));
  EXPECT_TRUE(looks_caution(parse_gate_policy(R"({"looks": [6], "level": 0.05})", "x")).empty());
}

}  // namespace
}  // namespace decodelab
