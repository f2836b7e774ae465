// Which arms are refused where, in one table: the validity rules of the combinations that exist.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/layers/attention.h"
#include "engine/layers/lm_head_rows.h"
#include "engine/layers/softmax.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"
#include "engine/sampling/token_details.h"
#include "engine/tensor.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_model;

ModelConfig erf_config() { return small_config(true, Activation::gelu_erf); }
ModelConfig wide_heads() {
  ModelConfig config = small_config();
  config.head_dim = 264;
  return config;
}
ModelConfig heads_of_64() {
  ModelConfig config = small_config();
  config.head_dim = 64;
  return config;
}

struct Rule {
  std::string arm;
  ModelConfig config;
  std::string device;
  ElementType dtype;
  std::vector<std::string> words;  ///< Of the refusal; none: the arm is valid there.
};

std::vector<Rule> rules() {
  constexpr ElementType kFp32 = ElementType::float32;
  constexpr ElementType kFp16 = ElementType::float16;
  constexpr ElementType kBf16 = ElementType::bfloat16;
  const ModelConfig tanh = small_config();
  const ModelConfig erf = erf_config();
  return {
      // Flash attention and cuDNN take no fp32 on CUDA; the CPU's flash kernel does.
      {"causal,+flash-prefill", tanh, "cuda:0", kFp32, {"flash-prefill", "fp16 and bf16 only"}},
      {"causal,+flash-decode", tanh, "cuda:0", kFp32, {"flash-decode", "fp16 and bf16 only"}},
      {"bigcode,-fused-softmax", tanh, "cuda:0", kFp32, {"flash-prefill", "fp16 and bf16 only"}},
      {"causal,+flash-prefill", tanh, "cuda:0", kBf16, {}},
      // Tokens that are read row by row are read before the step is over.
      {"causal,+late-read-back", tanh, "cpu", kFp32, {"late-read-back", "vectorized-choice"}},
      {"causal,+late-read-back,+vectorized-choice", tanh, "cpu", kFp32, {}},
      {"causal,+flash-decode", tanh, "cuda:0", kFp16, {}},
      {"causal,+flash-decode,+flash-prefill", tanh, "cpu", kFp32, {}},
      {"causal,+cudnn-prefill", heads_of_64(), "cuda:0", kFp32, {"cudnn-prefill", "not fp32"}},
      {"causal,+cudnn-decode", heads_of_64(), "cuda:0", kFp32, {"cudnn-decode", "not fp32"}},
      {"causal,+cudnn-prefill", heads_of_64(), "cuda:0", kBf16, {}},
      {"causal,+cudnn-decode", heads_of_64(), "cuda:0", kFp16, {}},
      {"causal,+cudnn-decode", tanh, "cuda:0", kBf16, {"cudnn-decode", "multiple of 8"}},
      {"causal,+cudnn-prefill", wide_heads(), "cuda:0", kBf16, {"cudnn-prefill", "at most 128"}},
      {"causal,+cudnn-prefill", tanh, "cpu", kBf16, {"cudnn-prefill", "CUDA"}},
      {"causal,+cudnn-decode", tanh, "cpu", kBf16, {"cudnn-decode", "CUDA"}},
      // The memory-efficient kernel takes multi-query attention, expanded; the variant's summary says so, below.
      {"causal,+efficient-prefill", tanh, "cuda:0", kFp32, {}},
      {"causal,+efficient-decode", small_config(false), "cuda:0", kBf16, {}},
      {"causal,+efficient-prefill", tanh, "cpu", kFp32, {"efficient-prefill", "CUDA"}},
      {"causal,+efficient-decode", tanh, "cpu", kFp32, {"efficient-decode", "CUDA"}},
      // Products with an activation behind them: erf on a CPU, tanh on CUDA; packed-linear does both, transposed-linear
      // neither.
      {"causal,+fused-gelu", tanh, "cpu", kFp32, {"fused-gelu", "erf form of gelu on a CPU", "packed-linear"}},
      {"causal,+fused-gelu", erf, "cpu", kFp32, {}},
      {"causal,+fused-gelu", tanh, "cuda:0", kBf16, {}},
      {"causal,+fused-gelu", erf, "cuda:0", kBf16, {"fused-gelu", "cuBLASLt computes the tanh form"}},
      {"causal,+fused-gelu,+packed-linear", tanh, "cpu", kBf16, {}},
      {"causal,+fused-gelu,+packed-linear", erf, "cpu", kFp32, {}},
      {"native,-packed-linear", tanh, "cpu", kFp32, {"fused-gelu", "packed-linear computes either"}},
      {"causal,+fused-gelu,+transposed-linear", erf, "cpu", kFp32, {"fused-gelu", "transposed-linear", "no effect"}},
      // The head on last tokens is compatible with prompt log-probabilities: it then runs on all, below.
      {"causal,+details-on-request,+last-token-lm-head", tanh, "cpu", kFp32, {}},
      // Padded keys are for a cache that attention reads as it lies: prefill may pack its rows, since the cache does
      // not.
      {"causal,+packed-prefill,+padded-keys", tanh, "cpu", kFp32, {}},
      {"causal,+padded-keys,+split-kv-decode", tanh, "cpu", kFp32, {"padded-keys", "split-kv-decode", "no effect"}},
      {"causal,+flash-decode,+padded-keys", tanh, "cpu", kFp32, {}},
      // A softmax is there only where scores are written out.
      {"causal,+flash-decode,+flash-prefill,+fused-softmax", tanh, "cpu", kFp32, {"fused-softmax", "no effect"}},
      {"causal,+flash-prefill,+fused-softmax,+split-kv-decode", tanh, "cpu", kFp32, {"fused-softmax", "no effect"}},
      {"flash,+fused-softmax", tanh, "cpu", kFp32, {"fused-softmax", "flash-prefill", "flash-decode"}},
      {"causal,+flash-prefill,+fused-softmax", tanh, "cpu", kFp32, {}},
      {"causal,+flash-decode,+fused-softmax", tanh, "cpu", kFp32, {}},
      // Own products read fp32 and bf16; own attention heads of some sizes.
      {"causal,+packed-linear", tanh, "cpu", kFp16, {"packed-linear", "fp32 and bf16"}},
      {"causal,+fused-layer-norm", tanh, "cpu", kFp16, {}},
      {"causal,+fused-softmax", tanh, "cpu", kFp16, {}},
      {"causal,+split-kv-decode", tanh, "cpu", kFp16, {}},
      {"causal,+split-kv-decode", wide_heads(), "cpu", kFp32, {"split-kv-decode", "at most 256"}},
      // Two variants on one slot.
      {"bigcode,+kv-static", tanh, "cpu", kFp32, {"'kv-grow' and 'kv-static'", "slot 'kv_growth'"}},
      {"causal,+batch-rng,+philox-rng", tanh, "cpu", kFp32, {"'batch-rng' and 'philox-rng'", "slot 'rng'"}},
      {"causal,+lean-forward,+workspace-forward", tanh, "cpu", kFp32, {"slot 'workspace'"}},
  };
}

TEST(Rules, RefuseInOneSentenceWhatCannotRunAndNothingElse) {
  for (const Rule& rule : rules()) {
    const std::string reason =
        unsupported_reason(read_arm(rule.arm), {.config = rule.config, .dtype = rule.dtype, .device = rule.device});
    const std::string where = rule.arm + " on " + rule.device + ": '" + reason + "'";
    EXPECT_EQ(reason.empty(), rule.words.empty()) << where;
    for (const std::string& word : rule.words) {
      EXPECT_NE(reason.find(word), std::string::npos) << where << " lacks '" << word << "'";
    }
    EXPECT_EQ(reason.find_first_of("\n."), std::string::npos) << where << " is not one sentence";
  }
}

TEST(Rules, LetEveryPresetRunOnACpuInFp32WhereItsActivationIsTheModels) {
  const ModelConfig config = small_config();
  const std::map<std::string, ModelConfig> drafts{{"small", config}};
  for (const Preset& preset : presets()) {
    EXPECT_EQ(unsupported_reason(parse_arm(preset.name),
                                 {.config = config, .dtype = ElementType::float32, .device = "cpu", .drafts = &drafts}),
              "")
        << preset.name;
  }
}

TEST(Rules, AreSaidByTheSummaryWhereAKernelPaysForWhatItTakes) {
  const auto summary = [](const std::string& name) { return registered_variants().at(name).summary; };
  for (const std::string name : {"efficient-prefill", "efficient-decode"}) {
    EXPECT_NE(summary(name).find("key heads are copied for every query head"), std::string::npos) << name;
  }
  EXPECT_NE(summary("cudnn-decode").find("plans anew for each number of keys"), std::string::npos);
}

TEST(Rules, OfSeveralQueriesAfterHeldKeysAreRight) {
  const ModelConfig config = small_config();
  const StepRows rows({4, 4}, {3, 3}, config.positions, at::kCPU);
  const at::Tensor query = at::randn({2, 3, config.hidden_size});
  const at::Tensor keys = at::randn({2, 7, config.kv_heads * config.head_dim});
  PlainWorkspace workspace;
  const AttentionCall call{
      .layer = 0, .query = query, .keys = keys, .values = keys, .rows = rows, .workspace = workspace};
  const at::Tensor expected =
      reference_plan().decode_attention.factory()(attention_shape(config), make_unfused_softmax)->forward(call);
  for (const std::string name : {"flash-prefill", "flash-decode", "split-kv-decode"}) {
    const EnginePlan plan = bind_arm(parse_arm("causal,+" + name), reference_plan());
    const auto& slot = plan.prefill_attention.variant().empty() ? plan.decode_attention : plan.prefill_attention;
    const auto attention = slot.factory()(attention_shape(config), plan.softmax.factory());
    EXPECT_TRUE(at::allclose(attention->forward(call), expected, 1e-5, 1e-5)) << name;
  }
}

TEST(Rules, RunTheHeadOnAllPositionsWherePromptLogProbabilitiesAreAskedForAndOnThemOnly) {
  const EnginePlan plan = bind_arm(parse_arm("causal,+details-on-request,+last-token-lm-head"), reference_plan());
  const auto head = plan.lm_head_rows.factory()();
  EXPECT_TRUE(head->all_positions({.prompt = {.log_prob = true}}));
  EXPECT_FALSE(head->all_positions({.generated = {.log_prob = true, .rank = true}}));
  const std::vector<Completion> completions =
      generate(Engine(small_model(small_config()), plan),
               {.prompts = ragged_prompts(), .max_tokens = 1, .details = {{.prompt = {.log_prob = true}}}});
  for (std::size_t row = 0; row < completions.size(); ++row) {
    EXPECT_EQ(completions[row].prompt_details.size(), ragged_prompts()[row].size() - 1);
  }
}

TEST(Rules, HoldAWorkspaceToNoAllocationAndPaddedKeysToNoKeyThatAttentionCutsOff) {
  const ModelConfig config = small_config();
  const auto expected = [&config](const std::string& arm, const std::string& variant) {
    const Arm parsed = parse_arm(arm);
    const EnginePlan plan = bind_arm(parsed, reference_plan());
    const Variant& named = registered_variants().at(variant);
    std::vector<std::string> counters;
    for (const Expectation& expectation : named.expects({.config = config,
                                                         .plan = plan,
                                                         .dtype = ElementType::float32,
                                                         .phase = Phase::decode,
                                                         .device = "cpu",
                                                         .batch_size = 2,
                                                         .length = 5,
                                                         .steps = 2},
                                                        complete_parameters(named, parsed.variants.at(variant)))) {
      counters.push_back(expectation.counter);
    }
    return counters;
  };
  const std::vector<std::string> workspace = expected("native", "workspace-forward");
  EXPECT_NE(std::ranges::find(workspace, "mlp.allocations"), workspace.end());
  EXPECT_NE(std::ranges::find(workspace, "projection.allocations"), workspace.end());
  EXPECT_EQ(expected("bigcode", "padded-keys"), std::vector<std::string>{"padding_keys"});
  EXPECT_TRUE(expected("causal,+flash-decode,+padded-keys", "padded-keys").empty());
}

}  // namespace
}  // namespace decodelab
