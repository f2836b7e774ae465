// Speculation changes no token: every proposer under every preset and family, and every wrong guess.
#include <algorithm>

#include <gtest/gtest.h>

#include "bench/measure/torch_counters.h"
#include "engine/batching.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::small_config;
using testing::small_gemma_config;
using testing::small_llama_config;
using testing::small_model;
using testing::small_t5_config;

using Rows = std::vector<std::vector<std::int64_t>>;

constexpr std::int64_t kTokens = 20;
constexpr std::int64_t kVocabulary = 97;

/// Prompts that repeat themselves, so that something is guessed, of different lengths.
Rows repetitive_prompts(std::size_t rows) {
  Rows prompts;
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<std::int64_t> prompt;
    for (std::size_t token = 0; token < 5 + 3 * (row % 4); ++token) {
      prompt.push_back(static_cast<std::int64_t>((7 * row + token % 4 * (row + 3)) % kVocabulary));
    }
    prompts.push_back(prompt);
  }
  return prompts;
}

std::vector<ModelConfig> families() {
  return {small_config(), small_config(false), small_llama_config(), small_gemma_config(), small_t5_config()};
}

bool has_arm(const std::string& arm, const Model& model) {
  return unsupported_reason(parse_arm(arm), {.config = model.config(), .dtype = model.dtype(), .device = "cpu"})
      .empty();
}

Rows said_by(const std::vector<Completion>& completions) {
  Rows tokens;
  for (const Completion& completion : completions) {
    tokens.push_back(completion.token_ids);
  }
  return tokens;
}

std::vector<std::string> proposers() {
  return {",+ngram-lookup:tokens=3",
          ",+ngram-lookup:match=1:tokens=8",
          ",+suffix-automaton:tokens=1",
          ",+suffix-automaton:tokens=16",
          ",+draft-model:draft=self:tokens=3",
          ",+early-exit:tokens=5",
          ",+suffix-automaton,+goodput-length",
          ",+early-exit,+adaptive-length:start=1"};
}

TEST(Speculation, GivesTheReferencesTokensUnderEveryPresetAndFamilyInEveryBatch) {
  for (const ModelConfig& config : families()) {
    const auto model = small_model(config);
    for (const std::size_t batch : {1u, 2u, 3u, 8u}) {
      const GenerationRequest request{.prompts = repetitive_prompts(batch), .max_tokens = kTokens};
      const Rows expected = said_by(generate(engine_for("causal", model), request));
      for (const Preset& preset : presets()) {
        for (const std::string& proposer : proposers()) {
          if (!bind_preset(preset.name, EnginePlan{}).proposer.variant().empty()) {
            continue;  // It is native with a proposer.
          }
          const std::string arm = preset.name + proposer;
          if (!has_arm(arm, *model)) {
            continue;
          }
          const std::vector<Completion> got = generate(engine_for(arm, model), request);
          EXPECT_EQ(said_by(got), expected) << config.family << ", " << arm << ", batch " << batch;
        }
      }
    }
  }
}

TEST(Speculation, SkipsTokensWhereARowRepeatsItself) {
  const auto model = small_model(small_config());
  const std::vector<Completion> got =
      generate(engine_for("causal,+suffix-automaton", model), {.prompts = repetitive_prompts(3), .max_tokens = 40});
  for (const Completion& completion : got) {
    EXPECT_GT(completion.skipped, 5);
    EXPECT_LE(completion.skipped, completion.proposed);
    EXPECT_LT(completion.skipped, std::ssize(completion.token_ids));
  }
}

/// Guesses of each row: what it will say, with a mistake at `wrong`, if it is below `count`.
Rows guesses_of(const Rows& truth, const std::vector<std::size_t>& said, std::size_t count, std::size_t wrong) {
  Rows guesses;
  for (std::size_t row = 0; row < truth.size(); ++row) {
    const std::size_t own = count > row ? count - row : 0;  // Rows differ, and some guess nothing.
    std::vector<std::int64_t> of_row;
    for (std::size_t token = 0; token < own && said[row] + token < truth[row].size(); ++token) {
      const std::int64_t right = truth[row][said[row] + token];
      of_row.push_back(token == wrong ? (right + 1) % kVocabulary : right);
    }
    guesses.push_back(of_row);
  }
  return guesses;
}

TEST(Speculation, KeepsJustTheGuessesBeforeAMistakeAndGoesOnAsIfNothingHadBeenGuessed) {
  for (const ModelConfig& config : families()) {
    const auto model = small_model(config);
    const Rows prompts = repetitive_prompts(3);
    const Rows truth = said_by(generate(engine_for("causal", model), {.prompts = prompts, .max_tokens = 2 * kTokens}));
    for (const std::string arm : {"causal", "bigcode,+batched-accept", "native"}) {
      if (!has_arm(arm, *model)) {
        continue;
      }
      const Engine engine = engine_for(arm, model);
      for (const std::size_t count : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 16u}) {
        for (const std::size_t wrong : {std::size_t{0}, count / 2, count - 1, count}) {
          Session session(engine, {.batch_size = 3, .max_tokens = 60, .details = {}});
          Rows said;
          for (const std::int64_t first : session.prefill(prompts).token_ids) {
            said.push_back({first});
          }
          for (int round = 0; round < 3; ++round) {
            const Rows guesses = guesses_of(truth, {said[0].size(), said[1].size(), said[2].size()}, count, wrong);
            const std::vector<RowRun> runs = session.verify(guesses);
            for (std::size_t row = 0; row < said.size(); ++row) {
              const std::size_t right = std::min(wrong, guesses[row].size());
              EXPECT_EQ(runs[row].accepted, static_cast<std::int64_t>(right));
              EXPECT_EQ(runs[row].token_ids.size(), right + 1);
              std::ranges::copy(runs[row].token_ids, std::back_inserter(said[row]));
            }
          }
          const std::vector<std::int64_t> next = session.decode().token_ids;
          for (std::size_t row = 0; row < said.size(); ++row) {
            said[row].push_back(next[row]);
            const std::size_t compared = std::min(said[row].size(), truth[row].size());
            said[row].resize(compared);
            EXPECT_EQ(said[row], std::vector<std::int64_t>(truth[row].begin(),
                                                           truth[row].begin() + static_cast<std::ptrdiff_t>(compared)))
                << config.family << ", " << arm << ", " << count << " guesses, wrong at " << wrong << ", row " << row;
          }
        }
      }
    }
  }
}

TEST(Speculation, DrawsTheTokensOfPlainDecodingWithThatSeed) {
  const auto model = small_model(small_config());
  std::vector<SamplingParameters> sampling(4, {.sample = true, .temperature = 0.3, .top_k = 5});
  for (std::size_t row = 0; row < sampling.size(); ++row) {
    sampling[row].seed = 11 + row;
  }
  sampling[2] = {};  // Greedy between the others.
  sampling[3].repetition_penalty = 1.3;
  GenerationRequest request{.prompts = repetitive_prompts(4), .max_tokens = 30};
  request.sampling = sampling;
  for (const std::string base : {"causal", "causal,+vectorized-choice", "causal,+philox-rng",
                                 "causal,+vectorized-choice,+philox-rng", "causal,+host-choice", "native"}) {
    const Rows expected = said_by(generate(engine_for(base, model), request));
    for (const std::string& proposer : proposers()) {
      for (const std::string acceptance : {"", ",+batched-accept", ",+lockstep-accept"}) {
        const std::string arm = base + proposer + (base == "native" ? "" : acceptance);
        EXPECT_EQ(said_by(generate(engine_for(arm, model), request)), expected) << arm;
      }
    }
  }
}

TEST(Speculation, KeepsRulesPenaltiesAndDetailsInsideARun) {
  const auto model = small_model(small_config());
  GenerationRequest request{.prompts = repetitive_prompts(3), .max_tokens = 24};
  request.rules = {{.allowed_ids = {3, 5, 8, 13}}, {.min_tokens = 4}, {}};
  request.sampling = {{}, {.repetition_penalty = 1.5}, {}};
  request.eos_token_ids = {5};
  request.details = {{.generated = {.log_prob = true, .rank = true, .top = 3}, .processed = true}};
  request.vocabulary = std::make_shared<const MaskVocabulary>(std::vector<std::string>(), std::vector<std::int64_t>{5});
  const std::vector<Completion> expected = generate(engine_for("causal", model), request);
  for (const std::string base : {"causal", "native"}) {
    for (const std::string& proposer : proposers()) {
      const std::vector<Completion> got = generate(engine_for(base + proposer, model), request);
      for (std::size_t row = 0; row < got.size(); ++row) {
        SCOPED_TRACE(base + proposer + ", row " + std::to_string(row));
        EXPECT_EQ(got[row].token_ids, expected[row].token_ids);
        EXPECT_EQ(got[row].finish_reason, expected[row].finish_reason);
        ASSERT_EQ(got[row].details.size(), expected[row].details.size());
        for (std::size_t token = 0; token < got[row].details.size(); ++token) {
          EXPECT_EQ(got[row].details[token].rank, expected[row].details[token].rank);
          EXPECT_NEAR(got[row].details[token].log_prob, expected[row].details[token].log_prob, 1e-4);
        }
      }
    }
  }
}

TEST(Speculation, EndsAtEachTokenOfARunWhereTheEndComes) {
  const auto model = small_model(small_config());
  const Rows prompts = repetitive_prompts(2);
  const Rows truth = said_by(generate(engine_for("causal", model), {.prompts = prompts, .max_tokens = 24}));
  for (const std::int64_t eos : truth[0]) {
    GenerationRequest request{.prompts = prompts, .max_tokens = 24, .eos_token_ids = {eos}};
    const std::vector<Completion> expected = generate(engine_for("causal", model), request);
    const std::vector<Completion> got = generate(engine_for("native,+suffix-automaton:tokens=16", model), request);
    EXPECT_EQ(said_by(got), said_by(expected));
    EXPECT_EQ(got[0].finish_reason, expected[0].finish_reason);
  }
  for (std::int64_t most = 1; most <= 12; ++most) {
    const std::vector<Completion> got =
        generate(engine_for("native,+suffix-automaton:tokens=16", model), {.prompts = prompts, .max_tokens = most});
    EXPECT_EQ(std::ssize(got[0].token_ids), most);
  }
}

TEST(Speculation, RunsNoPaddingThroughTheLayersWhereRowsHaveFewerGuesses) {
  const Engine engine = engine_for("native", small_model(small_config()));
  Session session(engine, {.batch_size = 3, .max_tokens = 40, .details = {}});
  session.prefill(repetitive_prompts(3));
  StepCounters counting("cpu");
  session.verify(Rows{{}, {1, 2, 3, 4, 5}, {6}});
  const Counters counted = counting.counters();
  EXPECT_FALSE(counted.contains("padding_tokens"));
  EXPECT_EQ(counted.at("lm_head_rows"), 3 + 5 + 1) << "a token of each row, and the guesses";
  EXPECT_EQ(counted.at("verified_rows"), 3 + 5 + 1);
}

TEST(Speculation, UsesTheModelsLastPosition) {
  ModelConfig config = small_config();
  config.positions = 24;
  const auto model = small_model(config);
  const GenerationRequest request{.prompts = repetitive_prompts(1), .max_tokens = 24 - 5 + 1};
  EXPECT_EQ(said_by(generate(engine_for("native,+suffix-automaton:tokens=16", model), request)),
            said_by(generate(engine_for("causal", model), request)));
}

TEST(Speculation, HasTheBitsOfPlainDecodingInBf16UnderNative) {
  for (const ModelConfig& config : {small_config(), small_config(false), small_llama_config(), small_gemma_config()}) {
    const auto model = small_model(config, ElementType::bfloat16);
    const Engine engine = engine_for("native", model);
    const Rows prompts = repetitive_prompts(3);
    const SessionOptions options{.batch_size = 3, .max_tokens = 60, .details = {}};
    Session plain(engine, options);
    std::vector<std::vector<float>> logits;
    Rows truth;
    for (const std::int64_t first : plain.prefill(prompts).token_ids) {
      truth.push_back({first});
    }
    for (std::int64_t step = 0; step < kTokens; ++step) {
      const std::vector<std::int64_t> tokens = plain.decode().token_ids;
      for (std::size_t row = 0; row < truth.size(); ++row) {
        truth[row].push_back(tokens[row]);
      }
      logits.push_back(plain.last_logits());
    }
    for (const std::size_t count : {1u, 3u, 7u, 9u, 15u}) {  // The last are 48 rows at once.
      Session session(engine, options);
      session.prefill(prompts);
      Rows guesses;
      for (const std::vector<std::int64_t>& row : truth) {
        guesses.emplace_back(row.begin() + 1, row.begin() + 1 + static_cast<std::ptrdiff_t>(count));
      }
      const std::vector<RowRun> runs = session.verify(guesses);
      EXPECT_EQ(runs[0].accepted, static_cast<std::int64_t>(count));
      EXPECT_EQ(session.last_logits(), logits[count]) << config.family << ", " << count << " guesses";
    }
  }
}

TEST(Speculation, ServesABatchWhoseRowsComeAndGo) {
  const auto model = small_model(small_config());
  const Rows prompts = repetitive_prompts(7);
  for (const std::string base :
       {"native", "causal", "causal,+concatenate-filter", "causal,+slot-batch", "causal,+padded-batch"}) {
    const Engine engine = engine_for(base + ",+suffix-automaton:tokens=4", model);
    ContinuousBatch batch(engine, {.max_rows = 3});
    for (std::size_t request = 0; request < prompts.size(); ++request) {
      batch.submit({.prompt = prompts[request], .max_tokens = 4 + static_cast<std::int64_t>(5 * (request % 3))});
    }
    std::map<std::int64_t, std::vector<std::int64_t>> got;
    while (!batch.idle()) {
      for (const FinishedRequest& finished : batch.step()) {
        got[finished.id] = finished.samples.front().token_ids;
      }
    }
    for (std::size_t request = 0; request < prompts.size(); ++request) {
      const GenerationRequest alone{.prompts = {prompts[request]},
                                    .max_tokens = 4 + static_cast<std::int64_t>(5 * (request % 3))};
      EXPECT_EQ(got.at(static_cast<std::int64_t>(request)), said_by(generate(engine_for("causal", model), alone))[0])
          << base << ", request " << request;
    }
  }
}

TEST(Speculation, RefusesWhatItCannotCheck) {
  const auto model = small_model(small_config());
  const Engine plain = engine_for("causal", model);
  Session session(plain, {.batch_size = 2, .max_tokens = 60, .details = {}});
  EXPECT_THROW(session.verify(Rows{{1}, {}}), std::logic_error) << "nothing was fed";
  session.prefill(repetitive_prompts(2));
  EXPECT_THROW(session.verify(Rows{{1}}), std::invalid_argument);
  EXPECT_THROW(session.verify(Rows{{1}, {kVocabulary}}), std::invalid_argument);
  EXPECT_THROW(session.verify(Rows{{1}, std::vector<std::int64_t>(60, 1)}), std::length_error);
  EXPECT_THROW(session.speculate(std::vector<std::int64_t>{1, 1}), std::logic_error) << "the plan has no proposer";
  EXPECT_THROW(parse_arm("causal,+suffix-automaton,+ngram-lookup"), std::invalid_argument);
  for (const char* arm : {"causal,+no-cache,+suffix-automaton", "vector,+late-read-back,+ngram-lookup"}) {
    EXPECT_NE(unsupported_reason(read_arm(arm), {.config = model->config(), .dtype = model->dtype(), .device = "cpu"}),
              "")
        << arm;
  }
}

}  // namespace
}  // namespace decodelab
