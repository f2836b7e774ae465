// Sampled completions: mixed parameters in one batch, seeds, and what must not change them.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/sampling/rng.h"
#include "engine/sampling/token_choice.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::arms_of_every_variant;
using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_model;

constexpr std::int64_t kSampledTokens = 14;

/// Both choices with both generators that promise that a row depends on its seed alone.
const std::vector<std::string> kArms{"causal", "causal,+vectorized-choice", "causal,+philox-rng",
                                     "causal,+philox-rng,+vectorized-choice", "bigcode,+philox-rng"};

/// Greedy, penalized and sampled rows, one for each of ragged_prompts().
std::vector<SamplingParameters> every_kind_of_sampling() {
  return {{.repetition_penalty = 1.5},
          {.sample = true, .temperature = 1.3, .seed = 11},
          {.sample = true,
           .temperature = 2,
           .top_k = 20,
           .top_p = 0.9,
           .typical_p = 0.8,
           .repetition_penalty = 1.2,
           .seed = 12},
          {}};
}

std::vector<Completion> complete(const Engine& engine, const std::vector<std::vector<std::int64_t>>& prompts,
                                 const std::vector<SamplingParameters>& sampling, const DetailsRequest& details = {}) {
  return generate(engine,
                  {.prompts = prompts, .max_tokens = kSampledTokens, .details = {details}, .sampling = sampling});
}

std::vector<std::vector<std::int64_t>> tokens_of(const std::vector<Completion>& completions) {
  std::vector<std::vector<std::int64_t>> tokens;
  for (const Completion& completion : completions) {
    tokens.push_back(completion.token_ids);
  }
  return tokens;
}

TEST(Sampling, GivesEachRowOfAMixedBatchWhatItGivesThatRowAlone) {
  const auto model = small_model(small_config());
  for (const std::string& arm : kArms) {
    const Engine engine = engine_for(arm, model);
    const auto together = tokens_of(complete(engine, ragged_prompts(), every_kind_of_sampling()));
    for (std::size_t row = 0; row < together.size(); ++row) {
      EXPECT_EQ(together[row],
                complete(engine, {ragged_prompts()[row]}, {every_kind_of_sampling()[row]}).front().token_ids)
          << arm << ", row " << row;
    }
  }
}

TEST(Sampling, GivesTheSameTokensWhereTheRowsArePermuted) {
  const auto model = small_model(small_config());
  for (const std::string& arm : kArms) {
    const Engine engine = engine_for(arm, model);
    auto expected = tokens_of(complete(engine, ragged_prompts(), every_kind_of_sampling()));
    auto prompts = ragged_prompts();
    auto sampling = every_kind_of_sampling();
    std::ranges::rotate(prompts, prompts.begin() + 1);
    std::ranges::rotate(sampling, sampling.begin() + 1);
    std::ranges::rotate(expected, expected.begin() + 1);
    EXPECT_EQ(tokens_of(complete(engine, prompts, sampling)), expected) << arm;
  }
}

TEST(Sampling, GivesTheSameTokensInBothChoices) {
  const auto model = small_model(small_config());
  for (const std::string rng : {"", ",+batch-rng", ",+philox-rng"}) {
    EXPECT_EQ(tokens_of(complete(engine_for("causal,+vectorized-choice" + rng, model), ragged_prompts(),
                                 every_kind_of_sampling())),
              tokens_of(complete(engine_for("causal" + rng, model), ragged_prompts(), every_kind_of_sampling())))
        << rng;
  }
}

TEST(Sampling, GivesTheReferencesTokensUnderEveryVariantThatBindsNoGenerator) {
  const auto model = small_model(small_config());
  const auto expected = tokens_of(complete(engine_for("causal", model), ragged_prompts(), every_kind_of_sampling()));
  for (const std::string& arm : arms_of_every_variant()) {
    const EnginePlan plan = bind_arm(parse_arm(arm), reference_plan());
    const std::string reason =
        unsupported_reason(parse_arm(arm), {.config = model->config(), .dtype = model->dtype(), .device = "cpu"});
    if (!plan.rng.variant().empty() || !reason.empty()) {
      continue;
    }
    EXPECT_EQ(tokens_of(complete(engine_for(arm, model), ragged_prompts(), every_kind_of_sampling())), expected) << arm;
  }
}

TEST(Sampling, RepeatsItselfWithAnySeedAndDiffersBetweenSeeds) {
  const auto model = small_model(small_config());
  for (const std::string arm : {"causal", "causal,+batch-rng", "causal,+philox-rng"}) {
    const Engine engine = engine_for(arm, model);
    const auto with_seed = [&](std::uint64_t seed) {
      return tokens_of(complete(engine, ragged_prompts(), {{.sample = true, .seed = seed}}));
    };
    EXPECT_EQ(with_seed(1), with_seed(1)) << arm;
    EXPECT_NE(with_seed(1), with_seed(2)) << arm;
    EXPECT_NE(with_seed(1), with_seed(std::uint64_t{1} + (std::uint64_t{1} << 32)))
        << arm << ": half of the seed counts";
  }
}

TEST(Sampling, ReportsTheSeedThatItDrewAndRepeatsItself) {
  const Engine engine = engine_for("causal,+philox-rng", small_model(small_config()));
  const std::vector<Completion> unseeded = complete(engine, ragged_prompts(), {{.sample = true}});
  std::vector<SamplingParameters> seeded;
  for (const Completion& completion : unseeded) {
    ASSERT_TRUE(completion.seed);
    seeded.push_back({.sample = true, .seed = completion.seed});
  }
  EXPECT_EQ(tokens_of(complete(engine, ragged_prompts(), seeded)), tokens_of(unseeded));
  EXPECT_FALSE(complete(engine, ragged_prompts(), {}).front().seed);
}

TEST(Sampling, IsNotChangedByDetails) {
  const auto model = small_model(small_config());
  for (const std::string& arm : kArms) {
    const Engine engine = engine_for(arm + (arm.starts_with("bigcode") ? "" : ",+details-on-request"), model);
    const std::vector<Completion> with =
        complete(engine, ragged_prompts(), every_kind_of_sampling(),
                 {.generated = {.log_prob = true, .rank = true}, .prompt = {.log_prob = true}});
    EXPECT_EQ(tokens_of(with), tokens_of(complete(engine, ragged_prompts(), every_kind_of_sampling()))) << arm;
    EXPECT_EQ(with[1].details.size(), static_cast<std::size_t>(kSampledTokens));
  }
}

TEST(Sampling, FollowsItsPenaltyThroughForcedTokensAndTruncations) {
  const auto model = small_model(small_config());
  for (const std::string& arm : kArms) {
    const Engine engine = engine_for(arm, model);
    Session session(engine,
                    {.batch_size = 1, .max_tokens = 30, .details = {}, .sampling = {{.repetition_penalty = 8}}});
    const std::vector<std::vector<std::int64_t>> prompt{{1, 2, 3, 4}};
    const std::int64_t first = session.prefill(prompt).token_ids.front();
    std::vector<std::int64_t> tokens;
    for (int step = 0; step < 8; ++step) {
      tokens.push_back(session.decode().token_ids.front());
    }
    std::vector<std::int64_t> unlike = tokens;
    std::ranges::sort(unlike);
    EXPECT_EQ(std::ranges::adjacent_find(unlike), unlike.end()) << arm << ": a penalty of 8 let a token come back";
    session.truncate(4);
    session.force_tokens(std::vector<std::int64_t>{first});
    for (const std::int64_t token : tokens) {
      EXPECT_EQ(session.decode().token_ids.front(), token) << arm;
    }
  }
}

TEST(Greedy, ConsumesNoRandomNumbers) {
  const auto model = small_model(small_config());
  for (const std::string arm : {"causal", "causal,+vectorized-choice"}) {
    EnginePlan plan = bind_arm(parse_arm(arm), reference_plan());
    std::size_t seeds = 0;
    plan.rng.bind("counting", [&](const RngOptions& options) {
      seeds += options.seeds.size();
      return make_row_rng(options);
    });
    const Engine engine(model, plan);
    complete(engine, ragged_prompts(), {});
    complete(engine, ragged_prompts(), {{.repetition_penalty = 2}});
    EXPECT_EQ(seeds, 0u) << arm;
    complete(engine, ragged_prompts(), every_kind_of_sampling());
    EXPECT_EQ(seeds, 2u) << arm << ": the sampled rows only";
  }
}

TEST(Greedy, IsWhatTopKOfOneAndAVanishingTemperatureSample) {
  const auto model = small_model(small_config());
  for (const std::string& arm : kArms) {
    const Engine engine = engine_for(arm, model);
    const auto greedy = tokens_of(complete(engine, ragged_prompts(), {}));
    EXPECT_EQ(tokens_of(complete(engine, ragged_prompts(), {{.sample = true, .top_k = 1}})), greedy) << arm;
    EXPECT_EQ(tokens_of(complete(engine, ragged_prompts(), {{.sample = true, .temperature = 1e-4}})), greedy) << arm;
  }
}

TEST(Sampling, RefusesParametersOfAnotherNumberOfRows) {
  const Engine engine = engine_for("causal", small_model(small_config()));
  EXPECT_THROW(complete(engine, ragged_prompts(), {{}, {}, {}}), std::invalid_argument);
  EXPECT_THROW(complete(engine, ragged_prompts(), {{.sample = true, .top_p = 2}}), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
