// What every variant must hold, whichever it is: it iterates the registry.
#include <gtest/gtest.h>

#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::arms_of_every_variant;
using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_gemma_config;
using testing::small_llama_config;
using testing::small_model;
using testing::small_t5_config;

/// Enough to pass two growths of every growing cache.
constexpr std::int64_t kEveryTokens = 18;

std::vector<std::string> arms_and_presets() {
  std::vector<std::string> arms = arms_of_every_variant();
  for (const Preset& preset : presets()) {
    arms.push_back(preset.name);
  }
  return arms;
}

std::vector<Completion> complete(const std::string& arm, const std::shared_ptr<const Model>& model,
                                 const DetailsRequest& details = {}) {
  return generate(
      engine_for(arm, model),
      {.prompts = ragged_prompts(), .max_tokens = kEveryTokens, .details = {details}, .keep_prefill_logits = true});
}

/// Whether a CPU can run the arm on that model.
bool runs_on(const std::string& arm, const Model& model) {
  return unsupported_reason(parse_arm(arm), {.config = model.config(), .dtype = model.dtype(), .device = "cpu"})
      .empty();
}

TEST(EveryVariant, GeneratesTheReferencesTokensInFp32) {
  for (const ModelConfig& config : {small_config(), small_config(false), small_config(true, Activation::gelu_erf),
                                    small_llama_config(), small_gemma_config(), small_t5_config()}) {
    const auto model = small_model(config);
    const std::vector<Completion> expected = complete("causal", model);
    for (const std::string& arm : arms_and_presets()) {
      if (!runs_on(arm, *model)) {
        continue;
      }
      const std::vector<Completion> got = complete(arm, model);
      for (std::size_t row = 0; row < expected.size(); ++row) {
        EXPECT_EQ(got[row].token_ids, expected[row].token_ids) << arm << ", row " << row;
        EXPECT_LT(testing::relative_difference(got[row].prefill_logits, expected[row].prefill_logits),
                  testing::tolerance(ElementType::float32))
            << arm;
      }
    }
  }
}

TEST(EveryVariant, StaysWithinTheToleranceOf16BitTypes) {
  for (const auto& [dtype, config] :
       {std::pair(ElementType::bfloat16, small_config()), std::pair(ElementType::float16, small_config()),
        std::pair(ElementType::bfloat16, small_llama_config()), std::pair(ElementType::bfloat16, small_gemma_config()),
        std::pair(ElementType::bfloat16, small_t5_config()), std::pair(ElementType::float16, small_t5_config())}) {
    const auto model = small_model(config, dtype);
    const std::vector<Completion> fed = complete("causal", model);
    const auto expected = testing::forced_logits(engine_for("causal", model), fed, kEveryTokens - 1);
    for (const std::string& arm : arms_and_presets()) {
      if (!runs_on(arm, *model)) {
        continue;
      }
      const auto got = testing::forced_logits(engine_for(arm, model), fed, kEveryTokens - 1);
      // What each rank computes of a sum is rounded to the type before it is added.
      const double rounds_more = arm.find("-ranks") == std::string::npos ? 1 : 1.5;
      for (std::size_t step = 0; step < expected.size(); ++step) {
        EXPECT_LT(testing::relative_difference(got[step], expected[step]), rounds_more * testing::tolerance(dtype))
            << config.family << ", " << arm << ", step " << step;
      }
    }
  }
}

/// One whose matrices have a multiple of 16 outputs and of 32 inputs.
ModelConfig aligned_llama_config() {
  ModelConfig config = small_llama_config();
  config.hidden_size = 64;
  config.heads = 4;
  config.head_dim = config.rotary.front().dims = 16;
  config.intermediate_size = 96;
  config.vocabulary_size = 112;
  return config;
}

TEST(EveryVariant, ThatIsLossyStaysWithinItsBoundAndSaysSo) {
  for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
    for (const ModelConfig& config : {small_config(), small_config(true, Activation::gelu_erf), small_llama_config(),
                                      small_gemma_config(), small_t5_config(), aligned_llama_config()}) {
      const auto model = small_model(config, dtype);
      const std::vector<Completion> fed = complete("causal", model);
      for (const std::string& arm : testing::lossy_arms()) {
        if (!runs_on(arm, *model)) {
          continue;
        }
        const std::string held_to = fidelity_of(parse_arm(arm)).held_to;
        const std::string reference = held_to.empty() ? "causal" : "causal," + held_to;
        const auto expected = testing::forced_logits(engine_for(reference, model), fed, kEveryTokens - 1);
        const auto got = testing::forced_logits(engine_for(arm, model), fed, kEveryTokens - 1);
        double worst = 0;
        for (std::size_t step = 0; step < expected.size(); ++step) {
          worst = std::max<double>(worst, testing::relative_difference(got[step], expected[step]));
        }
        EXPECT_LT(worst, fidelity_of(parse_arm(arm)).logit_bound) << config.family << ", " << arm;
      }
    }
  }
}

/// Ids and ranks are equal, but where two logits are closer than arms round.
void expect_near(const std::vector<TokenDetails>& got, const std::vector<TokenDetails>& expected) {
  constexpr float kRounding = 1e-4f;
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t token = 0; token < expected.size(); ++token) {
    const TokenDetails& mine = got[token];
    const TokenDetails& theirs = expected[token];
    EXPECT_NEAR(mine.log_prob, theirs.log_prob, kRounding) << token;
    EXPECT_EQ(mine.rank, theirs.rank) << token;
    ASSERT_EQ(mine.top.size(), theirs.top.size()) << token;
    for (std::size_t place = 0; place < mine.top.size(); ++place) {
      EXPECT_EQ(mine.top[place].id, theirs.top[place].id) << token;
      EXPECT_NEAR(mine.top[place].log_prob, theirs.top[place].log_prob, kRounding) << token;
    }
    ASSERT_EQ(mine.log_probs_of_ids.size(), theirs.log_probs_of_ids.size()) << token;
    for (std::size_t id = 0; id < mine.log_probs_of_ids.size(); ++id) {
      EXPECT_NEAR(mine.log_probs_of_ids[id], theirs.log_probs_of_ids[id], kRounding) << token;
    }
  }
}

TEST(EveryVariant, ComputesTheDetailsThatAreAskedFor) {
  const auto model = small_model(small_config());
  const TokenRequest all{.log_prob = true, .rank = true, .top = 5, .ids = {0, 96, 11}};
  const DetailsRequest details{.generated = all, .prompt = all};
  const std::vector<Completion> expected = complete("causal", model, details);
  for (const std::string& arm : arms_and_presets()) {
    if (!runs_on(arm, *model)) {
      continue;
    }
    const std::vector<Completion> got = complete(arm, model, details);
    for (std::size_t row = 0; row < expected.size(); ++row) {
      SCOPED_TRACE(arm + ", row " + std::to_string(row));
      expect_near(got[row].details, expected[row].details);
      expect_near(got[row].prompt_details, expected[row].prompt_details);
    }
  }
}

TEST(EveryVariant, BindsASlotAndSaysWhereItComesFrom) {
  for (const auto& [name, variant] : registered_variants()) {
    EXPECT_FALSE(slots_bound_by(variant).empty()) << name;
    EXPECT_FALSE(variant.summary.empty()) << name;
    EXPECT_EQ(variant.summary.back(), '.') << name;
    EXPECT_FALSE(variant.source.empty()) << name;
    for (const ParameterSpec& parameter : variant.parameters) {
      if (!parameter.default_word) {
        EXPECT_LE(parameter.minimum, parameter.default_value) << name;
        EXPECT_LE(parameter.default_value, parameter.maximum) << name;
      }
      EXPECT_FALSE(parameter.help.empty()) << name;
    }
    for (const BoundSlot& slot : slots_of(bind_arm(parse_arm(smallest_arm(variant)), reference_plan()))) {
      EXPECT_TRUE(slot.variant.empty() || slot.variant == name || std::ranges::count(variant.needs, slot.variant) == 1)
          << "the slot " << slot.slot << " is bound under another name, " << slot.variant;
    }
  }
}

TEST(EveryVariant, StaysBelowItsClosedFormOfMemory) {
  const auto model = small_model(small_config());
  for (const std::string& arm : arms_and_presets()) {
    const bool divides = arm.find("early-exit:layers") != std::string::npos || arm.find("-ranks:") != std::string::npos;
    if (divides && !runs_on(arm, *model)) {
      continue;  // The model has fewer layers, or fewer heads.
    }
    const Engine engine = engine_for(arm, model);
    EXPECT_GT(engine.step_bytes(4, 32, 0, 40), 0) << arm;
    EXPECT_GT(engine.step_bytes(8, 32, 0, 40), engine.step_bytes(4, 32, 0, 40)) << arm;
    const std::int64_t longer = engine.step_bytes(4, 1, 40, 48) - engine.step_bytes(4, 1, 8, 16);
    // A cache of all positions has them from the start.
    EXPECT_GE(longer, arm.find("kv-static") == std::string::npos ? 1 : 0) << arm;
  }
}

TEST(EveryVariant, CountsWhatRowsAskForInItsClosedFormOfMemory) {
  ModelConfig config = small_config();
  config.vocabulary_size = 60'000;
  const Engine engine = engine_for("native", small_model(config));
  const DetailsRequest of_prompts{.generated = {}, .prompt = {.log_prob = true, .top = 5}};
  const DetailsRequest of_tokens{.generated = {.log_prob = true, .top = 5}, .prompt = {}};
  EXPECT_GT(engine.step_bytes(4, 32, 0, 40, of_prompts), engine.step_bytes(4, 32, 0, 40));
  EXPECT_GT(engine.step_bytes(4, 1, 8, 40, of_tokens), engine.step_bytes(4, 1, 8, 40));
}

TEST(EveryVariant, CountsTheSlotsThatItsGrowthRuleGivesInItsClosedFormOfMemory) {
  const ModelConfig config = small_config();
  const auto model = small_model(config);
  const auto slots = [&](const std::string& arm) {
    const std::int64_t slot_bytes = 4 * config.layers * config.kv_width() * static_cast<std::int64_t>(sizeof(float));
    return engine_for(arm, model).step_bytes(4, 1, 8, 16) / slot_bytes;
  };
  EXPECT_GE(slots("causal,+kv-static"), config.positions) << "all positions, whatever the session asks for";
  EXPECT_EQ(slots("causal,+kv-static") - slots("causal,+kv-preallocated"), config.positions - 16);
}

TEST(Presets, NameRegisteredVariantsAndAreTheirOwnCanonicalForm) {
  for (const Preset& preset : presets()) {
    EXPECT_EQ(parse_arm(preset.name).label, preset.name);
    EXPECT_EQ(parse_arm(preset.name).variants.size(), preset.variants.size());
  }
  EXPECT_TRUE(parse_arm("causal").variants.empty());
}

}  // namespace
}  // namespace decodelab
