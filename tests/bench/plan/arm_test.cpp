// The grammar of arms, on variants that only this file registers under the names of the presets.
#include "bench/plan/arm.h"

#include "variants/presets.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

Variant fake(const std::string& name, void (*apply)(EnginePlan&, const Parameters&),
             std::vector<ParameterSpec> parameters = {}) {
  return {.name = name,
          .summary = "A fake.",
          .source = "this test",
          .parameters = std::move(parameters),
          .expects = {},
          .unsupported = {},
          .apply = apply};
}

/// The real variants need libtorch; these bind the same slots to nothing.
const bool registered =
    register_variant(
        fake("details-on-request",
             [](EnginePlan& plan, const Parameters&) { plan.token_details.bind("details-on-request", {}); })) &&
    register_variant(
        fake("flash-prefill",
             [](EnginePlan& plan, const Parameters&) { plan.prefill_attention.bind("flash-prefill", {}); })) &&
    register_variant(fake("kv-grow", [](EnginePlan& plan, const Parameters&) { plan.kv_growth.bind("kv-grow", {}); },
                          {{.name = "tokens", .default_value = 8, .minimum = 1, .maximum = 64, .help = "tokens"}})) &&
    register_variant(fake("kv-preallocated",
                          [](EnginePlan& plan, const Parameters&) { plan.kv_growth.bind("kv-preallocated", {}); },
                          {{.name = "multiple", .default_value = 8, .minimum = 1, .maximum = 64, .help = "tokens"}})) &&
    register_variant(
        fake("last-token-lm-head",
             [](EnginePlan& plan, const Parameters&) { plan.lm_head_rows.bind("last-token-lm-head", {}); })) &&
    register_variant(fake("vectorized-choice", [](EnginePlan& plan, const Parameters&) {
      plan.token_choice.bind("vectorized-choice", {});
    }));

std::string refusal(const std::string& text) {
  try {
    return "accepted as " + parse_arm(text).label;
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(Arm, HasACanonicalLabel) {
  ASSERT_TRUE(registered);
  EXPECT_EQ(parse_arm("causal").label, "causal");
  EXPECT_EQ(parse_arm("causal,+vectorized-choice,+kv-grow:tokens=8").label, "causal,+kv-grow,+vectorized-choice");
  EXPECT_EQ(parse_arm("causal,+kv-grow:tokens=16").label, "causal,+kv-grow:tokens=16");
  EXPECT_EQ(parse_arm("bigcode,-kv-grow,+kv-preallocated").label, "bigcode,+kv-preallocated,-kv-grow");
  EXPECT_EQ(parse_arm("bigcode,+kv-grow:tokens=16").label, "bigcode,+kv-grow:tokens=16");
}

TEST(Arm, IsThePresetWhoseVariantsItHas) {
  EXPECT_EQ(parse_arm("bigcode,-kv-grow,+kv-grow").label, "bigcode");
  EXPECT_EQ(parse_arm("causal,+kv-grow,-kv-grow").label, "causal");
  EXPECT_EQ(
      parse_arm("causal,+details-on-request,+flash-prefill,+kv-grow,+last-token-lm-head,+vectorized-choice").label,
      "bigcode");
}

TEST(Arm, ParsesItsOwnLabel) {
  for (const char* text : {"causal", "bigcode", "bigcode,-kv-grow,+kv-preallocated:multiple=16",
                           "causal,+kv-grow:tokens=3,+flash-prefill"}) {
    const Arm arm = parse_arm(text);
    EXPECT_EQ(parse_arm(arm.label).label, arm.label);
    EXPECT_EQ(parse_arm(arm.label).variants, arm.variants);
  }
}

TEST(Arm, MayBeThereASecondTimeAsItsNull) {
  const Arm arm = parse_arm("null:causal,+kv-grow:tokens=16");
  EXPECT_EQ(arm.label, "null:causal,+kv-grow:tokens=16");
  EXPECT_EQ(arm.variants, parse_arm("causal,+kv-grow:tokens=16").variants);
  EXPECT_EQ(parse_arm(arm.label).label, arm.label);
  EXPECT_THROW(parse_arm("null:"), std::invalid_argument);
}

TEST(Arm, NamesTheNearestForAnUnknownPresetOrVariant) {
  EXPECT_NE(refusal("bigcod").find("'bigcode'"), std::string::npos) << refusal("bigcod");
  EXPECT_NE(refusal("causal,+kv-grwo").find("'kv-grow'"), std::string::npos) << refusal("causal,+kv-grwo");
  EXPECT_NE(refusal("causal,+zzzzzzzzzzzz").find("the nearest are"), std::string::npos)
      << refusal("causal,+zzzzzzzzzzzz");
  EXPECT_NE(refusal("kv-grow").find("causal,+kv-grow"), std::string::npos) << refusal("kv-grow");
}

TEST(Arm, RefusesTwoVariantsOnOneSlotAndNamesBoth) {
  const std::string message = refusal("bigcode,+kv-preallocated");
  EXPECT_NE(message.find("'kv-grow' and 'kv-preallocated'"), std::string::npos) << message;
  EXPECT_NE(message.find("kv_growth"), std::string::npos) << message;
}

TEST(Arm, RefusesMalformedWords) {
  for (const char* text :
       {"", "causal,", "causal,kv-grow", "causal,+", "causal,+kv-grow:", "causal,+kv-grow:tokens",
        "causal,+kv-grow:tokens=", "causal,+kv-grow:tokens=x", "causal,+kv-grow:tokens=8x", "causal,+kv-grow:tokens=0",
        "causal,+kv-grow:tokens=65", "causal,+kv-grow:tokns=8", "causal,+kv-grow:tokens=8:tokens=9",
        "causal,+flash-prefill:n=1", "causal,-kv-grow", "causal,+kv-grow:tokens=99999999999999999999"}) {
    EXPECT_THROW(parse_arm(text), std::invalid_argument) << text << ": " << refusal(text);
  }
}

TEST(Arm, BindsEachOfItsVariants) {
  const EnginePlan plan = bind_arm(parse_arm("causal,+kv-grow,+vectorized-choice"), EnginePlan{});
  EXPECT_EQ(plan.kv_growth.variant(), "kv-grow");
  EXPECT_EQ(plan.token_choice.variant(), "vectorized-choice");
  EXPECT_EQ(plan.lm_head_rows.variant(), "");
}

TEST(Registry, RefusesBadVariants) {
  const auto bind_nothing = [](EnginePlan&, const Parameters&) {};
  EXPECT_THROW(register_variant(fake("kv-grow", bind_nothing)), std::logic_error);
  EXPECT_THROW(register_variant(fake("Kv_Grow", bind_nothing)), std::logic_error);
  EXPECT_THROW(register_variant(fake("", bind_nothing)), std::logic_error);
  EXPECT_THROW(register_variant({.name = "binds-nothing",
                                 .summary = "",
                                 .source = "",
                                 .parameters = {},
                                 .expects = {},
                                 .unsupported = {},
                                 .apply = {}}),
               std::logic_error);
}

}  // namespace
}  // namespace decodelab
