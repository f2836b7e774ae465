// The arms of an ablation, on the variants that arm_test.cpp registers.
#include "bench/plan/ablation.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

/// Of a sweep of prefill and decode.
const std::set<std::string> kIdleSlots{"token_mask", "prefix_reuse", "fork", "batching"};

std::vector<std::string> labels(Ablation ablation, const std::string& arm,
                                const std::set<std::string>& idle = kIdleSlots) {
  std::vector<std::string> labels;
  const ModelConfig config;
  for (const Arm& one : ablated_arms(ablation, parse_arm(arm),
                                     {.config = config, .dtype = ElementType::float32, .device = "cpu"}, idle)) {
    labels.push_back(one.label);
  }
  return labels;
}

std::string reason_of(const std::string& label) {
  const ModelConfig config;
  return unsupported_reason(read_arm(label), {.config = config, .dtype = ElementType::float32, .device = "cpu"});
}

bool has(const std::vector<std::string>& labels, const std::string& label) {
  return std::ranges::find(labels, label) != labels.end();
}

/// What has nothing to do in a cell of a sweep, and is therefore not switched.
const std::set<std::string> kIdleInSweeps{"cached-trie-masks", "concatenate-filter", "copied-fork", "copied-prefix"};

TEST(Ablation, AddsEachVariantThatTheBaseDoesNotHave) {
  const std::vector<std::string> arms = labels(Ablation::add_one, "causal");
  EXPECT_EQ(arms.front(), "causal");
  EXPECT_EQ(arms.size(), 1 + registered_variants().size() - kIdleInSweeps.size());
  for (const auto& [name, variant] : registered_variants()) {
    EXPECT_EQ(has(arms, "causal,+" + name), !kIdleInSweeps.contains(name)) << name;
  }
}

TEST(Ablation, ShowsWhatCannotBeAddedWithItsReason) {
  const std::vector<std::string> arms = labels(Ablation::add_one, "bigcode,-padded-keys");
  EXPECT_EQ(arms.size(), 1 + registered_variants().size() - kIdleInSweeps.size() -
                             parse_arm("bigcode,-padded-keys").variants.size());
  EXPECT_TRUE(has(arms, "bigcode")) << "what becomes a preset by the addition is called by its name";
  ASSERT_TRUE(has(arms, "bigcode,+kv-static,-padded-keys"));
  EXPECT_NE(reason_of("bigcode,+kv-static,-padded-keys").find("'kv-grow' and 'kv-static'"), std::string::npos);
  ASSERT_TRUE(has(arms, "bigcode,+fused-gelu,-padded-keys"));
  EXPECT_EQ(reason_of("bigcode,+fused-gelu,-padded-keys"), "fused-gelu: the fake needs packed-linear");
  EXPECT_EQ(reason_of("bigcode"), "");
}

TEST(Ablation, LeavesEachVariantOfTheTopOut) {
  const std::vector<std::string> arms = labels(Ablation::leave_one_out, "native");
  EXPECT_EQ(arms.front(), "native");
  EXPECT_EQ(arms.size(), 1 + parse_arm("native").variants.size() - kIdleInSweeps.size());
  for (const auto& [name, parameters] : parse_arm("native").variants) {
    EXPECT_EQ(has(arms, "native,-" + name), name != "packed-linear" && !kIdleInSweeps.contains(name)) << name;
  }
  for (const std::string& arm : arms) {
    EXPECT_EQ(reason_of(arm), "") << arm;
  }
}

TEST(Ablation, LeavesOutWithAVariantTheOneThatCannotRunWithoutIt) {
  EXPECT_EQ(reason_of("native,-packed-linear"), "fused-gelu: the fake needs packed-linear");
  EXPECT_TRUE(has(labels(Ablation::leave_one_out, "native"), "native,-fused-gelu,-packed-linear"));
}

TEST(Ablation, LeavesOutOneAloneWhereTheTopCannotRunEither) {
  const std::string top = "causal,+details-on-request,+fused-gelu";
  EXPECT_NE(reason_of(top), "");
  EXPECT_EQ(labels(Ablation::leave_one_out, top),
            (std::vector<std::string>{top, "causal,+fused-gelu", "causal,+details-on-request"}));
}

TEST(Ablation, KeepsTheParametersAndThePrefixOfItsArm) {
  const std::vector<std::string> arms = labels(Ablation::leave_one_out, "null:vector,+kv-grow:tokens=16");
  EXPECT_EQ(arms, (std::vector<std::string>{"null:vector,+kv-grow:tokens=16",
                                            "null:vector,+kv-grow:tokens=16,-details-on-request", "null:vector",
                                            "null:vector,+kv-grow:tokens=16,-vectorized-choice"}));
}

TEST(Ablation, HasLabelsThatAreTheirOwnCanonicalFormAndNoneTwice) {
  for (const std::string arm : {"causal", "bigcode", "native", "flash,-flash-decode"}) {
    for (const Ablation ablation : {Ablation::add_one, Ablation::leave_one_out}) {
      if (ablation == Ablation::leave_one_out && arm == "causal") {
        continue;
      }
      const std::vector<std::string> arms = labels(ablation, arm);
      for (const std::string& label : arms) {
        EXPECT_EQ(read_arm(label).label, label);
      }
      EXPECT_EQ(std::set<std::string>(arms.begin(), arms.end()).size(), arms.size()) << arm;
    }
  }
}

TEST(Ablation, RefusesAnArmWithoutASwitchAndAnUnknownWord) {
  EXPECT_THROW(labels(Ablation::leave_one_out, "causal"), std::invalid_argument);
  EXPECT_EQ(ablation_from_name("add-one"), Ablation::add_one);
  EXPECT_EQ(ablation_from_name("leave-one-out"), Ablation::leave_one_out);
  try {
    ablation_from_name("all");
    FAIL() << "'all' was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--ablate: 'all' is unknown; expected add-one or leave-one-out");
  }
  EXPECT_EQ(parse_arm(default_arm(Ablation::add_one)).label, "causal");
  EXPECT_EQ(parse_arm(default_arm(Ablation::leave_one_out)).label, "native");
}

TEST(Ablation, TurnsWhatTheCellsOfTheSweepUse) {
  const std::vector<std::string> arms =
      labels(Ablation::leave_one_out, "native", {"token_mask", "prefix_reuse", "fork"});
  EXPECT_TRUE(has(arms, "native,-concatenate-filter")) << "where a cell serves requests";
  EXPECT_FALSE(has(arms, "native,-copied-fork"));
}

}  // namespace
}  // namespace decodelab
