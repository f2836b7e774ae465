// Every variant's counters prove that it ran, and show it where its effect is taken away.
#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "bench/measure/engine_worker.h"
#include "engine/checkpoint/token_bytes.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::small_config;
using testing::small_llama_config;
using testing::small_model;

/// What no test without a GPU can prove.
const std::set<std::string> kOnCudaOnly{"nccl-ranks",    "cuda-graph",       "cuda-graph-partial", "cudnn-decode",
                                        "cudnn-prefill", "efficient-decode", "efficient-prefill",  "warp-softmax"};

/// Kinds of cells: prefill, decode, batching; prefills of several `samples` a prompt, and of prompts whose `prefix` is
/// in a store; those whose tokens a pattern restricts, and those with details of tokens.
CellRecord cell_of(const std::string& kind) {
  const bool prefills = kind == "samples" || kind == "prefix" || kind.ends_with("prefill");
  return {.phase = prefills ? Phase::prefill : (kind.ends_with("decode") ? Phase::decode : phase_from_string(kind)),
          .batch = 3,
          .length = 11,
          .dtype = "fp32",
          .device = "cpu",
          .threads = 1,
          .scope = kind == "batching"  ? "served"
                   : kind == "samples" ? "step-samples-2"
                                       : "step"};
}

/// The probe of `label`, run by an engine that has `really` bound, greedily or with every row sampled.
Probe probe(const std::shared_ptr<const Model>& model, const std::string& label, const std::string& really,
            const std::string& phase, bool sampled = false) {
  const std::vector<std::string> letters(static_cast<std::size_t>(model->config().vocabulary_size), "a");
  auto text = std::make_shared<ModelText>();
  text->tokenizer = Tokenizer::load(std::filesystem::path(DECODELAB_TEST_DATA) / "tokenizer" / "gpt2.json");
  const CellInput input{.sampling = {.sample = sampled,
                                     .top_k = sampled ? 5 : 0,
                                     .seed = sampled ? std::optional<std::uint64_t>(1) : std::nullopt},
                        .vocabulary = std::make_shared<const MaskVocabulary>(letters, std::vector<std::int64_t>()),
                        .texts = std::make_shared<const TokenBytes>(text, "texts")};
  const auto engine = std::make_shared<const Engine>(model, bind_arm(parse_arm(really), reference_plan()), Drafts(),
                                                     testing::ranks_in_threads(really, model));
  const std::string asked = phase == "prefix"               ? "@prefix=0.5"
                            : phase.starts_with("masked")   ? "@regex=a*"
                            : phase.starts_with("detailed") ? "@top-tokens=5"
                            : phase.starts_with("texted")   ? "@top-tokens=5:text"
                                                            : "";
  const auto worker = make_engine_worker(engine, parse_arm(label + asked), input);
  CellRecord cell = cell_of(phase);
  cell.fill = engine->keeps_keys() ? "random" : "generated";
  return worker->probe(cell);
}

/// The smallest arm that has the variant and can run here: a draft is the model itself.
std::string arm_of(const Variant& variant) {
  return smallest_arm(variant, variant.name == "draft-model" ? ":draft=self" : "");
}

/// The arm of what `variant` needs.
std::string without(const Variant& variant) {
  std::string arm = "causal";
  for (const std::string& needed : variant.needs) {
    arm += ",+" + needed;
  }
  return arm;
}

/// The cells in which a variant has something to do.
std::vector<std::string> kinds_of(const Variant& variant) {
  const std::vector<std::string> slots = slots_bound_by(variant);
  if (slots == std::vector<std::string>{"batching"}) {
    return {"batching"};
  }
  if (slots == std::vector<std::string>{"prefix_reuse"}) {
    return {"prefix"};
  }
  if (slots == std::vector<std::string>{"token_mask"}) {
    return {"masked prefill", "masked decode"};
  }
  if (slots == std::vector<std::string>{"token_text"}) {
    return {"texted prefill", "texted decode"};
  }
  if (slots == std::vector<std::string>{"top_tokens"}) {
    return {"detailed prefill", "detailed decode"};
  }
  if (slots == std::vector<std::string>{"proposer"}) {
    return {"continue"};
  }
  return slots == std::vector<std::string>{"fork"} ? std::vector<std::string>{"samples"}
                                                   : std::vector<std::string>{"prefill", "decode"};
}

/// Checks that the counters of `variant` prove that it ran, and miss it where it did not, in all phases in which they
/// say something; returns whether there is one.
bool is_proved(const Variant& variant, const std::shared_ptr<const Model>& model) {
  const std::string arm = arm_of(variant);
  bool says_something = false;
  for (const bool sampled : {false, true}) {
    for (const std::string& phase : kinds_of(variant)) {
      if (sampled && variant.name == "oracle-draft") {
        continue;  // It is not told what such rows will say, which differs from one step to the next.
      }
      const std::string where = arm + " " + phase + (sampled ? " sampled " : " ") + model->config().family;
      const Probe on = probe(model, arm, arm, phase, sampled);
      EXPECT_NE(on.engaged, std::optional(false)) << where << ": " << on.missing;
      EXPECT_TRUE(on.unsteady.empty()) << where << ": " << on.unsteady.front();
      if (!on.engaged) {
        continue;
      }
      // Without it, but with what it needs: that alone may be all that there is to prove in this phase.
      const Probe off = probe(model, arm, without(variant), phase, sampled);
      if (off.engaged == true && !variant.needs.empty()) {
        continue;
      }
      says_something = true;
      EXPECT_EQ(off.engaged, std::optional(false)) << where;
      EXPECT_NE(off.missing.find(variant.name + " did not run: "), std::string::npos) << off.missing;
    }
  }
  return says_something;
}

TEST(Engagement, EveryVariantIsProvedOnAndIsCaughtWhereItsEffectIsRemoved) {
  const std::vector models{small_model(small_config()), small_model(small_config(true, Activation::gelu_erf)),
                           small_model(small_llama_config())};
  for (const auto& [name, variant] : registered_variants()) {
    if (!variant.expects || name == "split-kv-verify" || name == "medusa-heads" || name == "draft-process" ||
        name == "stored-linear" || name.starts_with("aten-int")) {
      continue;  // one without effect on rows of one length, or where nobody guesses; of files, a process of its own,
                 // or shapes that these models do not have
    }
    const std::string arm = arm_of(variant);
    const auto runs = [&arm](const std::shared_ptr<const Model>& model) {
      return unsupported_reason(parse_arm(arm), {.config = model->config(), .dtype = model->dtype(), .device = "cpu"})
          .empty();
    };
    if (std::ranges::none_of(models, runs)) {
      EXPECT_TRUE(kOnCudaOnly.contains(name)) << name << " runs nowhere here, and is not known to need CUDA";
      continue;
    }
    bool says_something = false;
    for (const auto& model : models) {
      says_something = (runs(model) && is_proved(variant, model)) || says_something;
    }
    EXPECT_TRUE(says_something) << name;
  }
}

TEST(Engagement, AtensProductsByRoundedWeightsAreProvedOnShapesThatTheyTake) {
  ModelConfig config = small_llama_config();
  config.hidden_size = 64;
  config.heads = 4;
  config.head_dim = config.rotary.front().dims = 16;
  config.intermediate_size = 96;
  config.vocabulary_size = 112;
  for (const char* name : {"aten-int4-linear", "aten-int8-linear"}) {
    EXPECT_TRUE(is_proved(registered_variants().at(name), small_model(config))) << name;
  }
}

TEST(Engagement, EveryPresetIsProvedInBothPhases) {
  for (const auto& model : {small_model(small_config()), small_model(small_llama_config())}) {
    for (const std::string phase : {"prefill", "decode"}) {
      EXPECT_EQ(probe(model, "causal", "causal", phase).engaged, std::nullopt) << "the reference has nothing to prove";
      for (const Preset& preset : presets()) {
        const EnginePlan plan = bind_preset(preset.name, EnginePlan{});
        const bool guesses = !plan.proposer.variant().empty() && phase == "decode";
        if (!preset.variants.empty() && !guesses && !plan.proposer.value().draft) {
          const Probe counted = probe(model, preset.name, preset.name, phase);
          EXPECT_EQ(counted.engaged, std::optional(true))
              << preset.name << " " << phase << " " << model->config().family << ": " << counted.missing;
        }
      }
    }
  }
}

TEST(Engagement, SplitKvVerifyIsProvedWhereSomebodyGuesses) {
  const auto model = small_model(small_config());
  const std::string arm = "causal,+oracle-draft,+split-kv-decode,+split-kv-verify";
  EXPECT_EQ(probe(model, arm, arm, "continue").engaged, std::optional(true));
  const Probe off = probe(model, arm, "causal,+oracle-draft,+split-kv-decode", "continue");
  EXPECT_EQ(off.engaged, std::optional(false));
  EXPECT_NE(off.missing.find("split-kv-verify did not run: "), std::string::npos) << off.missing;
}

TEST(Engagement, NativeIsProvedAlsoWhereOneDnnMakesTheOutputsOfManyRows) {
  const auto model = small_model(small_config());
  CellRecord cell = cell_of("decode");
  cell.batch = 40;
  const auto worker = make_engine_worker(
      std::make_shared<const Engine>(model, bind_arm(parse_arm("native"), reference_plan())), parse_arm("native"), {});
  const Probe counted = worker->probe(cell);
  EXPECT_EQ(counted.engaged, std::optional(true)) << counted.missing;
  EXPECT_GT(counted.counters.at("mlp.allocations"), 0);
  EXPECT_FALSE(counted.counters.contains("op.aten::arange"));
}

TEST(Engagement, ADecodeStepOfNativeAllocatesNothing) {
  for (const bool multi_query : {true, false}) {
    ModelConfig config = small_config(multi_query);
    config.layers = 5;
    const Probe counted = probe(small_model(config), "native", "native", "decode");
    for (const auto& [name, value] : counted.counters) {
      EXPECT_FALSE(name.ends_with("allocations")) << name << " " << value;
    }
  }
}

}  // namespace
}  // namespace decodelab
