// The grammar of arms, on variants that only this file registers under the names of the presets.
#include "bench/plan/arm.h"

#include <gtest/gtest.h>

#include "variants/presets.h"

namespace decodelab {
namespace {

/// A variant that binds a slot to nothing: the real ones need libtorch.
template <typename Slot>
Variant fake(const std::string& name, Slot slot, std::vector<ParameterSpec> parameters = {}) {
  return {.name = name,
          .summary = "A fake.",
          .source = "this test",
          .parameters = std::move(parameters),
          .expects = {},
          .unsupported = {},
          .conflict = {},
          .apply = [name, slot](EnginePlan& plan, const Parameters&) { (plan.*slot).bind(name, {}); }};
}

std::vector<ParameterSpec> parameter(const std::string& name) {
  return {{.name = name, .default_value = 8, .minimum = 1, .maximum = 64, .help = "tokens"}};
}

/// A number and a word.
std::vector<ParameterSpec> words() {
  return {{.name = "tokens", .default_value = 8, .minimum = 1, .maximum = 64, .help = "tokens"},
          {.name = "draft", .help = "a name", .default_word = ""}};
}

/// Needs packed-linear beside it, as the real one does on a CPU.
Variant fake_gelu() {
  Variant variant = fake("fused-gelu", &EnginePlan::mlp);
  variant.unsupported = [](const RunsOn& where) {
    return where.plan->linear.variant() == "packed-linear" ? "" : "the fake needs packed-linear";
  };
  return variant;
}

/// Every variant that a preset names, and a second one on a slot.
bool register_fakes() {
  for (const Variant& variant : {fake("batched-accept", &EnginePlan::acceptance),
                                 fake("cached-trie-masks", &EnginePlan::token_mask),
                                 fake("copied-prefix", &EnginePlan::prefix_reuse),
                                 fake("copied-fork", &EnginePlan::fork),
                                 fake("chunked-lm-head", &EnginePlan::lm_head_rows),
                                 fake("scan-details", &EnginePlan::top_tokens),
                                 fake("table-text", &EnginePlan::token_text),
                                 fake("concatenate-filter", &EnginePlan::batching),
                                 fake("details-on-request", &EnginePlan::token_details),
                                 fake("flash-decode", &EnginePlan::decode_attention),
                                 fake("flash-prefill", &EnginePlan::prefill_attention),
                                 fake("fused-layer-norm", &EnginePlan::residual_norm),
                                 fake("fused-rotary", &EnginePlan::rotary),
                                 fake("fused-softmax", &EnginePlan::softmax),
                                 fake("kv-grow", &EnginePlan::kv_growth, parameter("tokens")),
                                 fake("kv-preallocated", &EnginePlan::kv_growth, parameter("multiple")),
                                 fake("kv-static", &EnginePlan::kv_growth),
                                 fake("last-token-lm-head", &EnginePlan::lm_head_rows),
                                 fake("lean-forward", &EnginePlan::workspace),
                                 fake("merged-kv", &EnginePlan::kv_layout),
                                 fake("packed-linear", &EnginePlan::linear),
                                 fake("packed-prefill", &EnginePlan::prefill_layout),
                                 fake("padded-keys", &EnginePlan::key_padding),
                                 fake("split-kv-decode", &EnginePlan::decode_attention),
                                 fake("split-kv-verify", &EnginePlan::verify_attention),
                                 fake("suffix-automaton", &EnginePlan::proposer),
                                 fake("draft-model", &EnginePlan::proposer, words()),
                                 fake("goodput-length", &EnginePlan::draft_length),
                                 fake("tile-prefill", &EnginePlan::prefill_attention),
                                 fake("transposed-linear", &EnginePlan::linear),
                                 fake("vectorized-choice", &EnginePlan::token_choice),
                                 fake("workspace-forward", &EnginePlan::workspace),
                                 fake_gelu()}) {
    register_variant(variant);
  }
  return true;
}

const bool registered = register_fakes();

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
  EXPECT_EQ(parse_arm("causal,+details-on-request,+flash-prefill,+fused-softmax,+kv-grow,+last-token-lm-head,"
                      "+merged-kv,+padded-keys,+vectorized-choice")
                .label,
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

TEST(Arm, HasWhatItAsksBehindItsVariants) {
  const Arm arm = parse_arm("null:causal,+kv-grow:tokens=16@samples=3@regex=a,b:c");
  EXPECT_EQ(arm.label, "null:causal,+kv-grow:tokens=16@regex=a,b:c@samples=3");
  EXPECT_EQ(arm.request.samples, 3);
  EXPECT_EQ(arm.variants, parse_arm("causal,+kv-grow:tokens=16").variants);
  EXPECT_EQ(parse_arm(arm.label).label, arm.label);
  EXPECT_EQ(request_part(arm.label), "@regex=a,b:c@samples=3");
  EXPECT_EQ(with_words("causal@samples=3", ",+kv-grow"), "causal,+kv-grow@samples=3");
  EXPECT_NE(refusal("causal@colour=red").find("--arm 'causal@colour=red'"), std::string::npos);
  EXPECT_THROW(parse_plain_arm("causal@samples=3", "not here"), std::invalid_argument);
  EXPECT_EQ(parse_plain_arm("causal", "not here").label, "causal");
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

TEST(Arm, IsReadWhereItCannotBeBoundAndThenSaysWhy) {
  const Arm arm = read_arm("bigcode,+kv-preallocated");
  EXPECT_EQ(arm.label, "bigcode,+kv-preallocated");
  const ModelConfig config;
  const RunsOn where{.config = config, .dtype = ElementType::float32, .device = "cpu"};
  EXPECT_NE(unsupported_reason(arm, where).find("both bind the slot 'kv_growth'"), std::string::npos);
  EXPECT_EQ(unsupported_reason(read_arm("bigcode"), where), "");
  EXPECT_THROW(read_arm("bigcode,+kv-prealocated"), std::invalid_argument);
}

TEST(Registry, RefusesBadVariants) {
  EXPECT_THROW(register_variant(fake("kv-grow", &EnginePlan::kv_growth)), std::logic_error);
  EXPECT_THROW(register_variant(fake("Kv_Grow", &EnginePlan::kv_growth)), std::logic_error);
  EXPECT_THROW(register_variant(fake("", &EnginePlan::kv_growth)), std::logic_error);
  EXPECT_THROW(register_variant({.name = "binds-nothing",
                                 .summary = "",
                                 .source = "",
                                 .parameters = {},
                                 .expects = {},
                                 .unsupported = {},
                                 .conflict = {},
                                 .apply = {}}),
               std::logic_error);
}

}  // namespace
}  // namespace decodelab
