// A second model guesses, and no token changes.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/batching.h"
#include "engine/drafts.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::ragged_prompts;
using testing::small_config;
using testing::small_gemma_config;
using testing::small_llama_config;
using testing::small_model;
using testing::small_t5_config;

using Rows = std::vector<std::vector<std::int64_t>>;

constexpr std::int64_t kTokens = 24;

Rows tokens_of(const std::vector<Completion>& completions) {
  Rows tokens;
  for (const Completion& completion : completions) {
    tokens.push_back(completion.token_ids);
  }
  return tokens;
}

/// A draft of one layer, another width and other keys than small_config().
std::shared_ptr<const Model> one_layer_draft(std::int64_t positions = 64) {
  ModelConfig config = small_llama_config();
  config.layers = 1;
  config.recipes.resize(1);
  config.positions = positions;
  return small_model(config);
}

Engine with_draft(const std::string& arm, const std::shared_ptr<const Model>& model, const Drafts& drafts) {
  return Engine(model, bind_arm(parse_arm(arm), reference_plan()), drafts);
}

std::int64_t sum_of_guesses(const std::vector<Completion>& completions, std::int64_t Completion::* what) {
  std::int64_t sum = 0;
  for (const Completion& completion : completions) {
    sum += completion.*what;
  }
  return sum;
}

std::string reason(const std::string& arm, const ModelConfig& config,
                   const std::map<std::string, ModelConfig>& drafts) {
  return unsupported_reason(parse_arm(arm),
                            {.config = config, .dtype = ElementType::float32, .device = "cpu", .drafts = &drafts});
}

TEST(DraftModel, GuessesForEveryFamilyInEveryBatch) {
  const Drafts drafts{{"small", one_layer_draft()}};
  for (const ModelConfig& config : {small_config(), small_config(false), small_llama_config(), small_gemma_config()}) {
    const auto model = small_model(config);
    for (const std::string base :
         {"causal", "bigcode", "native", "native,+kv-paged,+shared-fork,-copied-fork,-kv-preallocated"}) {
      if (!reason(base + ",+draft-model", config, {{"small", drafts.at("small").config}}).empty()) {
        continue;
      }
      for (const std::size_t batch : {1u, 2u, 3u, 4u}) {
        Rows prompts = ragged_prompts();
        prompts.resize(batch);
        const GenerationRequest request{.prompts = prompts, .max_tokens = kTokens};
        const Rows expected = tokens_of(generate(with_draft("causal", model, {}), request));
        for (const std::int64_t tokens : {1, 4, 7}) {
          const std::string arm = base + ",+draft-model:tokens=" + std::to_string(tokens);
          const std::vector<Completion> got = generate(with_draft(arm, model, drafts), request);
          EXPECT_EQ(tokens_of(got), expected) << config.family << ", " << arm << ", batch " << batch;
          EXPECT_GT(sum_of_guesses(got, &Completion::proposed), 0);
        }
      }
    }
  }
}

TEST(DraftModel, IsAlwaysRightWhereItIsTheModelItself) {
  for (const ModelConfig& config : {small_config(), small_llama_config(), small_gemma_config()}) {
    const auto model = small_model(config);
    for (const std::string arm : {"causal,+draft-model:draft=self:tokens=5", "native,+draft-model:draft=self:tokens=5",
                                  "native,+early-exit:layers=2:tokens=5"}) {
      const std::vector<Completion> got =
          generate(with_draft(arm, model, {}), {.prompts = ragged_prompts(), .max_tokens = kTokens});
      EXPECT_EQ(sum_of_guesses(got, &Completion::skipped), sum_of_guesses(got, &Completion::proposed))
          << config.family << ", " << arm;
      EXPECT_GT(sum_of_guesses(got, &Completion::skipped), 4 * 3 * (kTokens / 6));
    }
  }
}

TEST(DraftModel, SitsOutWhereARowHasMoreTokensThanItsPositions) {
  const auto model = small_model(small_config());
  for (const std::int64_t positions : {2, 8, 20}) {
    const Drafts drafts{{"short", one_layer_draft(positions)}};
    const GenerationRequest request{.prompts = ragged_prompts(), .max_tokens = 40};
    const std::vector<Completion> got = generate(with_draft("native,+draft-model", model, drafts), request);
    EXPECT_EQ(tokens_of(got), tokens_of(generate(with_draft("causal", model, {}), request))) << positions;
  }
}

TEST(DraftModel, LeavesDrawnTokensAsTheyAreWhereGuessesMustMatch) {
  const auto model = small_model(small_config());
  GenerationRequest request{.prompts = ragged_prompts(), .max_tokens = kTokens};
  request.sampling = {{.sample = true, .temperature = 0.4, .top_k = 6, .seed = 3}};
  for (std::int64_t samples : {1, 3}) {
    request.samples = samples;
    for (const std::string base : {"causal", "native", "native,+philox-rng"}) {
      const Rows expected = tokens_of(generate(with_draft(base, model, {}), request));
      EXPECT_EQ(tokens_of(generate(with_draft(base + ",+draft-model", model, {{"small", one_layer_draft()}}), request)),
                expected)
          << base << ", " << samples << " samples";
    }
  }
}

TEST(DraftModel, FollowsRowsThatComeAndGo) {
  const auto model = small_model(small_config());
  const Drafts drafts{{"small", one_layer_draft()}};
  for (const std::string base :
       {"native", "causal,+concatenate-filter", "causal,+slot-batch", "native,+padded-batch,-concatenate-filter"}) {
    for (const std::string draft :
         {",+draft-model:tokens=3", ",+draft-model:draft=self:tokens=3", ",+early-exit:tokens=2,+adaptive-length"}) {
      const Engine engine = with_draft(base + draft, model, drafts);
      ContinuousBatch batch(engine, {.max_rows = 3});
      std::vector<BatchRequest> requests;
      for (std::int64_t request = 0; request < 7; ++request) {
        std::vector<std::int64_t> prompt;
        for (std::int64_t token = 0; token < 1 + 4 * (request % 3); ++token) {
          prompt.push_back((11 * request + 5 * token) % 97);
        }
        requests.push_back({.prompt = prompt, .max_tokens = 3 + 5 * (request % 3)});
        batch.submit(requests.back());
      }
      std::map<std::int64_t, std::vector<std::int64_t>> got;
      while (!batch.idle()) {
        for (const FinishedRequest& finished : batch.step()) {
          got[finished.id] = finished.samples.front().token_ids;
        }
      }
      for (std::size_t request = 0; request < requests.size(); ++request) {
        const GenerationRequest alone{.prompts = {requests[request].prompt},
                                      .max_tokens = requests[request].max_tokens};
        EXPECT_EQ(got.at(static_cast<std::int64_t>(request)),
                  tokens_of(generate(with_draft("causal", model, {}), alone))[0])
            << base << draft << ", request " << request;
      }
    }
  }
}

std::string refusal(const std::string& arm, const std::shared_ptr<const Model>& model, const Drafts& drafts) {
  try {
    const Engine engine = with_draft(arm, model, drafts);
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(DraftModel, IsRefusedInASentenceWhereItCannotGuess) {
  const auto model = small_model(small_config());
  ModelConfig other = small_config();
  other.vocabulary_size = 50;
  const ModelConfig small = small_llama_config();
  EXPECT_NE(refusal("causal,+draft-model", model, {}).find("--draft NAME=MODEL"), std::string::npos);
  EXPECT_NE(refusal("causal,+draft-model:draft=x", model, {{"y", model}}).find("those given are y"), std::string::npos);
  EXPECT_NE(refusal("causal,+draft-model", model, {{"x", model}, {"y", model}}).find("which of the drafts x, y"),
            std::string::npos);
  EXPECT_NE(refusal("causal,+draft-model", model, {{"x", small_model(other)}}).find("a vocabulary of 50"),
            std::string::npos);
  EXPECT_NE(refusal("causal,+early-exit:layers=3", model, {}).find("the first 3 layers"), std::string::npos);
  EXPECT_EQ(refusal("causal,+draft-model", model, {{"x", model}}), "accepted");

  EXPECT_NE(reason("causal,+draft-model", small_config(), {}).find("--draft NAME=MODEL"), std::string::npos);
  EXPECT_NE(reason("causal,+draft-model:draft=self", small_t5_config(), {}).find("decoders alone"), std::string::npos);
  EXPECT_NE(reason("causal,+early-exit:layers=9", small_config(), {}).find("the model has 2"), std::string::npos);
  EXPECT_EQ(reason("native,+draft-model", small_config(), {{"x", small}}), "");
  EXPECT_EQ(reason("native,+draft-model:draft=self", small_config(), {}), "");
}

}  // namespace
}  // namespace decodelab
