// What holds on a GPU: every variant against the reference there, graphs against the steps that they record, and
// nothing waits or allocates.
#include <gtest/gtest.h>

#include "bench/measure/torch_counters.h"
#include "engine/generation/graph_runner.h"
#include "engine/runtime.h"
#include "engine/tensor.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_model;

constexpr const char* kDevice = "cuda:0";
/// Past two growths of every growing cache, and over an edge of every bucket below.
constexpr std::int64_t kDeviceTokens = 18;

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (present_devices().size() < 2) {
      GTEST_SKIP() << "no CUDA device is present";
    }
  }
};

/// Heads of 16 elements: libtorch's fused kernels want a multiple of 8.
ModelConfig config_for_gpu(bool multi_query = true, Activation activation = Activation::gelu_tanh) {
  ModelConfig config = small_config(multi_query, activation);
  config.hidden_size = 64;
  config.head_dim = 16;
  config.intermediate_size = 128;
  return config;
}

/// The configurations of all families that have kernels of their own, with heads of 16 elements.
std::vector<ModelConfig> configs_for_gpu() {
  std::vector<ModelConfig> configs{config_for_gpu(), config_for_gpu(false), config_for_gpu(true, Activation::gelu_erf)};
  for (ModelConfig config :
       {testing::small_llama_config(), testing::small_gemma_config(), testing::small_t5_config()}) {
    config.head_dim = 16;
    configs.push_back(config);
  }
  return configs;
}

std::vector<std::string> arms_for_gpu() {
  std::vector<std::string> arms = testing::arms_of_every_variant();
  for (const Preset& preset : presets()) {
    arms.push_back(preset.name);
  }
  const std::string own = "native,-packed-linear";
  for (const char* more : {"", ",+cuda-graph", ",+cuda-graph-partial", ",-split-kv-decode,+cuda-graph",
                           ",-split-kv-decode,+fused-softmax,+cuda-graph:keys=8",
                           ",-split-kv-decode,+warp-softmax,+cuda-graph:keys=8,+merged-kv"}) {
    arms.push_back(own + more);
  }
  return arms;
}

/// Whether an arm runs on one GPU.
bool runs(const std::string& arm, const Model& model) {
  const bool needs_two = arm.find("nccl-ranks") != std::string::npos;  // CudaRanks has them.
  return !needs_two &&
         unsupported_reason(parse_arm(arm), {.config = model.config(), .dtype = model.dtype(), .device = kDevice})
             .empty();
}

/// Flash attention on CUDA takes no mask, and so decodes rows of one length only.
bool takes_ragged_rows(const std::string& arm) {
  return bind_arm(parse_arm(arm), EnginePlan{}).decode_attention.variant() != "flash-decode";
}

std::vector<std::vector<std::int64_t>> even_prompts() { return {{5, 17, 96}, {7, 8, 9}, {1, 2, 3}, {90, 80, 70}}; }

TEST_F(Cuda, EveryVariantGivesTheReferencesTokensInFp32) {
  for (const ModelConfig& config : configs_for_gpu()) {
    SCOPED_TRACE(config.family);
    const auto model = small_model(config, ElementType::float32, kDevice);
    for (const auto& prompts : {even_prompts(), ragged_prompts()}) {
      const bool ragged = prompts == ragged_prompts();
      const GenerationRequest request{.prompts = prompts, .max_tokens = kDeviceTokens};
      const std::vector<Completion> expected = generate(engine_for("causal", model), request);
      for (const std::string& arm : arms_for_gpu()) {
        if (!runs(arm, *model) || (ragged && !takes_ragged_rows(arm))) {
          continue;
        }
        const std::vector<Completion> got = generate(engine_for(arm, model), request);
        for (std::size_t row = 0; row < expected.size(); ++row) {
          EXPECT_EQ(got[row].token_ids, expected[row].token_ids)
              << arm << ", row " << row << (ragged ? ", ragged" : "");
        }
      }
    }
  }
}

TEST_F(Cuda, EveryWayGivesTheReferencesDetailsOfTokens) {
  const auto model = small_model(config_for_gpu(), ElementType::float32, kDevice);
  const TokenRequest all{.log_prob = true, .rank = true, .top = 5, .ids = {0, 3}};
  const GenerationRequest request{
      .prompts = even_prompts(), .max_tokens = kDeviceTokens, .details = {{.generated = all, .prompt = all}}};
  const std::vector<Completion> expected = generate(engine_for("causal", model), request);
  const auto expect_same = [](const std::vector<TokenDetails>& got, const std::vector<TokenDetails>& of_reference) {
    ASSERT_EQ(got.size(), of_reference.size());
    for (std::size_t token = 0; token < got.size(); ++token) {
      EXPECT_EQ(got[token].rank, of_reference[token].rank);
      EXPECT_NEAR(got[token].log_prob, of_reference[token].log_prob, 1e-4);
      ASSERT_EQ(got[token].top.size(), of_reference[token].top.size());
      for (std::size_t place = 0; place < got[token].top.size(); ++place) {
        EXPECT_EQ(got[token].top[place].id, of_reference[token].top[place].id);
        EXPECT_NEAR(got[token].top[place].log_prob, of_reference[token].top[place].log_prob, 1e-4);
      }
      EXPECT_EQ(got[token].log_probs_of_ids.size(), 2U);
    }
  };
  for (const auto& [name, variant] : registered_variants()) {
    for (const std::string more : {"", ",+late-read-back"}) {
      if (slots_bound_by(variant) != std::vector<std::string>{"top_tokens"}) {
        continue;
      }
      SCOPED_TRACE(name + more);
      const std::vector<Completion> got =
          generate(engine_for("causal,+vectorized-choice,+" + name + more, model), request);
      for (std::size_t row = 0; row < expected.size(); ++row) {
        EXPECT_EQ(got[row].token_ids, expected[row].token_ids);
        expect_same(got[row].details, expected[row].details);
        expect_same(got[row].prompt_details, expected[row].prompt_details);
      }
    }
  }
}

/// Logits of decode steps from the prompts, each step fed `forced`.
std::vector<std::vector<float>> logits_of(const Engine& engine, const std::vector<std::vector<std::int64_t>>& prompts,
                                          const std::vector<Completion>& forced) {
  Session session(engine, {.batch_size = std::ssize(prompts), .max_tokens = 40, .details = {}});
  session.prefill(prompts);
  std::vector<std::vector<float>> logits{session.last_logits()};
  for (std::size_t step = 0; step + 1 < forced.front().token_ids.size(); ++step) {
    std::vector<std::int64_t> tokens;
    for (const Completion& completion : forced) {
      tokens.push_back(completion.token_ids[step]);
    }
    session.force_tokens(tokens);
    session.decode();
    logits.push_back(session.last_logits());
  }
  return logits;
}

TEST_F(Cuda, EveryVariantStaysWithinTheToleranceOf16BitTypes) {
  for (const auto& [dtype, config] :
       {std::pair(ElementType::float16, config_for_gpu()), std::pair(ElementType::bfloat16, config_for_gpu()),
        std::pair(ElementType::bfloat16, configs_for_gpu().at(3)),
        std::pair(ElementType::bfloat16, configs_for_gpu().at(4)),
        std::pair(ElementType::bfloat16, configs_for_gpu().at(5))}) {
    SCOPED_TRACE(config.family);
    const auto model = small_model(config, dtype, kDevice);
    for (const auto& prompts : {even_prompts(), ragged_prompts()}) {
      const bool ragged = prompts == ragged_prompts();
      const Engine reference = engine_for("causal", model);
      const std::vector<Completion> fed = generate(reference, {.prompts = prompts, .max_tokens = kDeviceTokens});
      const auto expected = logits_of(reference, prompts, fed);
      for (const std::string& arm : arms_for_gpu()) {
        if (!runs(arm, *model) || (ragged && !takes_ragged_rows(arm))) {
          continue;
        }
        const auto got = logits_of(engine_for(arm, model), prompts, fed);
        for (std::size_t step = 0; step < expected.size(); ++step) {
          EXPECT_LT(testing::relative_difference(got[step], expected[step]), testing::tolerance(dtype))
              << arm << ", step " << step << (ragged ? ", ragged" : "");
        }
      }
    }
  }
}

TEST_F(Cuda, EveryLossyVariantStaysWithinItsBoundOfWhatItIsHeldTo) {
  ModelConfig aligned = config_for_gpu();
  aligned.vocabulary_size = 112;
  for (const ModelConfig& config : {aligned, config_for_gpu(), configs_for_gpu().at(3)}) {
    const auto model = small_model(config, ElementType::bfloat16, kDevice);
    const std::vector<Completion> fed =
        generate(engine_for("causal", model), {.prompts = even_prompts(), .max_tokens = kDeviceTokens});
    for (const std::string& arm : testing::lossy_arms()) {
      if (!runs(arm, *model)) {
        continue;
      }
      const Fidelity fidelity = fidelity_of(parse_arm(arm));
      const std::string reference = fidelity.held_to.empty() ? "causal" : "causal," + fidelity.held_to;
      const auto expected = logits_of(engine_for(reference, model), even_prompts(), fed);
      const auto got = logits_of(engine_for(arm, model), even_prompts(), fed);
      for (std::size_t step = 0; step < expected.size(); ++step) {
        EXPECT_LT(testing::relative_difference(got[step], expected[step]), fidelity.logit_bound)
            << config.family << ", " << arm << ", step " << step;
      }
    }
  }
}

TEST_F(Cuda, AReplayedGraphHasTheBitsOfTheStepThatItRecordedAcrossBuckets) {
  for (const ElementType dtype : {ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
    const auto model = small_model(config_for_gpu(), dtype, kDevice);
    for (const GraphScope scope : {GraphScope::whole_step, GraphScope::around_attention}) {
      for (const char* attention : {"", ",+split-kv-decode,+split-kv-verify", ",+fused-softmax", ",+warp-softmax"}) {
        for (const std::size_t batch : {1u, 3u, 4u}) {
          const std::string arm = std::string("causal,+kv-static,+workspace-forward,+fused-layer-norm") + attention;
          const auto engine_with = [&](RecorderFactory recorder) {
            EnginePlan plan = bind_arm(parse_arm(arm), reference_plan());
            plan.step_runner.bind("this-test", [=](const StepRunnerOptions& options) {
              return make_graph_runner(options, scope, {.most_rows = 8, .keys_multiple = 8}, recorder);
            });
            return Engine(model, plan);
          };
          std::vector<std::vector<std::int64_t>> prompts = ragged_prompts();
          prompts.resize(batch);
          const Engine called = engine_with(make_calling_recorder);
          const Engine replayed = engine_with([] { return make_cuda_graph_recorder(kDevice); });
          const SessionOptions options{.batch_size = static_cast<std::int64_t>(batch), .max_tokens = 40, .details = {}};
          Session expected(called, options);
          Session got(replayed, options);
          expected.prefill(prompts);
          got.prefill(prompts);
          for (std::int64_t step = 0; step < kDeviceTokens; ++step) {
            ASSERT_EQ(got.decode().token_ids, expected.decode().token_ids) << arm << ", step " << step;
            ASSERT_EQ(got.last_logits(), expected.last_logits()) << arm << ", batch " << batch << ", step " << step;
          }
          std::vector<std::vector<std::int64_t>> guesses(batch, {5, 6, 7});
          guesses.back().pop_back();  // Padded where others have more.
          for (int pass = 0; pass < 3; ++pass) {
            const std::vector<RowRun> runs = got.verify(guesses);
            const std::vector<RowRun> wanted = expected.verify(guesses);
            for (std::size_t row = 0; row < batch; ++row) {
              ASSERT_EQ(runs[row].token_ids, wanted[row].token_ids) << arm << ", pass " << pass;
            }
            ASSERT_EQ(got.last_logits(), expected.last_logits()) << arm << ", batch " << batch << ", pass " << pass;
          }
          got.truncate(2);
          expected.truncate(2);
          const std::vector<std::int64_t> again(batch, 3);
          got.force_tokens(again);
          expected.force_tokens(again);
          ASSERT_EQ(got.decode().token_ids, expected.decode().token_ids) << arm << ", after a step back";
          ASSERT_EQ(got.last_logits(), expected.last_logits()) << arm << ", after a step back";
        }
      }
    }
  }
}

TEST_F(Cuda, SeveralSessionsReplayGraphsOfOneEngine) {
  const auto model = small_model(config_for_gpu(), ElementType::float32, kDevice);
  // Flash attention has no fp32 on CUDA.
  const std::string arm = "native,-packed-linear,-tile-prefill,+efficient-prefill,+cuda-graph:keys=8";
  const GenerationRequest request{.prompts = even_prompts(), .max_tokens = kDeviceTokens};
  const std::vector<Completion> expected = generate(engine_for("causal", model), request);
  const Engine engine = engine_for(arm, model);
  const SessionOptions options{.batch_size = 4, .max_tokens = 40, .details = {}};
  Session one(engine, options);
  Session other(engine, options);
  const std::vector<std::int64_t> first = one.prefill(even_prompts()).token_ids;
  other.prefill(even_prompts());
  for (std::size_t step = 1; step < static_cast<std::size_t>(kDeviceTokens); ++step) {
    const std::vector<std::int64_t> tokens = one.decode().token_ids;
    EXPECT_EQ(other.decode().token_ids, tokens);
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      EXPECT_EQ(tokens[row], expected[row].token_ids[step]) << "step " << step;
    }
  }
}

/// Counts the operations that wait for the device while it lives.
class SyncCounter final : public c10::WarningHandler {
 public:
  SyncCounter() : before_(c10::WarningUtils::get_warning_handler()) {
    c10::WarningUtils::set_warning_handler(this);
#ifdef DECODELAB_HAS_CUDA
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_WARN);
#endif
  }
  ~SyncCounter() override {
#ifdef DECODELAB_HAS_CUDA
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
#endif
    c10::WarningUtils::set_warning_handler(before_);
  }
  SyncCounter(const SyncCounter&) = delete;
  SyncCounter& operator=(const SyncCounter&) = delete;

  void process(const c10::Warning& warning) override {
    count_ += warning.msg().find("synchronizing CUDA operation") != std::string::npos;
  }
  int count() const { return count_; }

 private:
  c10::WarningHandler* before_;
  int count_ = 0;
};

TEST_F(Cuda, AStepOfOurOwnAllocatesNothingAndWaitsForNothingButItsTokens) {
  {
    const at::Tensor there = at::zeros({1}, at::device(at::Device(kDevice)));
    const SyncCounter waits;
    there.cpu();
    ASSERT_EQ(waits.count(), 1) << "the counter does not see a copy that waits";
  }
  const auto model = small_model(config_for_gpu(), ElementType::float16, kDevice);
  for (const std::string more : {"", ",+cuda-graph", ",+cuda-graph-partial"}) {
    const std::string arm = "native,-packed-linear" + more;
    const Engine engine = engine_for(arm, model);
    Session session(engine, {.batch_size = 4, .max_tokens = 40, .details = {}});
    session.fill_random(8, 1);
    session.force_tokens(std::vector<std::int64_t>{1, 2, 3, 4});
    session.decode();
    session.decode();
    StepCounters counting(kDevice);
    constexpr int kCounted = 4;
    SyncCounter waits;
    for (int step = 0; step < kCounted; ++step) {
      session.decode();
    }
    EXPECT_EQ(waits.count(), 0) << arm << ": a step waits for the event behind the copy of its tokens, and no more";
    for (const auto& [name, value] : counting.counters()) {
      // Reductions of libtorch may take scratch memory when tokens are chosen.
      if (name.ends_with(".allocations") && name != "choice.allocations") {
        ADD_FAILURE() << arm << ": " << name << " " << value;
      }
    }
  }
}

TEST_F(Cuda, GraphsCanBeRecordedAgainWhenAllOfThemWereDropped) {
  const std::unique_ptr<WorkRecorder> recorder = make_cuda_graph_recorder(kDevice);
  for (int round = 0; round < 3; ++round) {
    const at::Tensor number = at::zeros({1}, at::device(at::Device(kDevice)));
    std::unique_ptr<RecordedWork> recorded;
    recorder->aside([&] { recorded = recorder->record([&] { number.add_(at::ones({1}, number.options())); }); });
    recorded->run();
    recorded->run();
    EXPECT_EQ(number.item<float>(), 2) << "round " << round;
  }
}

TEST_F(Cuda, LaunchesOfGraphsAreCounted) {
  const auto model = small_model(config_for_gpu(), ElementType::float16, kDevice);
  for (const auto& [arm, launches] :
       {std::pair{"native,-packed-linear,+cuda-graph", 1}, std::pair{"native,-packed-linear,+cuda-graph-partial", 3}}) {
    const Engine engine = engine_for(arm, model);
    Session session(engine, {.batch_size = 2, .max_tokens = 40, .details = {}});
    session.fill_random(8, 1);
    session.force_tokens(std::vector<std::int64_t>{1, 2});
    StepCounters counting(kDevice);
    session.decode();
    EXPECT_EQ(counting.counters().at("graph_launches"), launches) << arm;
  }
}

}  // namespace
}  // namespace decodelab
