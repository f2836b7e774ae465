// The prefix store beside a plain list of what was put in.
#include "engine/prefix_store.h"

#include <algorithm>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "engine/layers/kv_cache.h"
#include "engine/samples.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

using testing::small_model;

using Tokens = std::vector<std::int64_t>;

/// Bytes of a token's keys and values in small_config(): 2 layers of 24 numbers.
constexpr std::int64_t kSmallTokenBytes = 2 * 24 * 4;

constexpr std::int64_t kPositions = 800;

std::int64_t most_tokens(const Engine& engine) { return engine.model().config().positions; }

Session fed_with(const Engine& engine, const Tokens& tokens) {
  Session session(engine, {.batch_size = 1, .max_tokens = most_tokens(engine), .details = {}});
  session.extend(std::vector<Tokens>{tokens});
  return session;
}

std::vector<float> logits_behind(const Engine& engine, const HeldPrefix& prefix, const Tokens& tokens) {
  Session session(engine, {.batch_size = 1, .max_tokens = most_tokens(engine), .details = {}});
  session.begin_with({&prefix, 1});
  session.extend(std::vector<Tokens>{{tokens.begin() + std::ssize(prefix.tokens), tokens.end()}});
  return session.last_logits();
}

Tokens repeated(const Tokens& tokens, std::int64_t times) {
  Tokens all;
  for (const std::int64_t token : tokens) {
    all.insert(all.end(), static_cast<std::size_t>(times), token);
  }
  return all;
}

Tokens tokens_of_three(std::mt19937& random) {
  Tokens tokens;
  for (std::uint32_t count = 1 + random() % 12; count > 0; --count) {
    tokens.push_back(1 + random() % 3);  // Of three tokens, so that many begin alike.
  }
  return tokens;
}

std::size_t longest_common(const std::vector<Tokens>& known, const Tokens& tokens) {
  std::size_t longest = 0;
  for (const Tokens& other : known) {
    const auto common = static_cast<std::size_t>(std::ranges::mismatch(other, tokens).in1 - other.begin());
    longest = std::max(longest, std::min(common, tokens.size() - 1));
  }
  return longest;
}

/// A store that holds copies, with prompts of a few tokens, and one that holds pages, with prompts of several pages.
struct KindOfStore {
  PrefixReuse reuse;
  std::int64_t repeats;  ///< Times that each token stands in a row.
  int rounds;
};

class PrefixStoreOf : public ::testing::TestWithParam<KindOfStore> {
 protected:
  static Engine engine(const KindOfStore& kind) {
    EnginePlan plan = reference_plan();
    plan.prefix_reuse.set_reference(kind.reuse);
    if (kind.reuse == PrefixReuse::shared) {
      plan.kv_growth.set_reference(make_paged_cache);
    }
    ModelConfig config = testing::small_config();
    config.positions = kPositions;
    return {small_model(config), plan};
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, PrefixStoreOf,
                         ::testing::Values(KindOfStore{PrefixReuse::copied, 1, 400},
                                           KindOfStore{PrefixReuse::shared, 61, 60}),
                         [](const auto& kind) { return kind.param.repeats == 1 ? "Copies" : "Pages"; });

TEST_P(PrefixStoreOf, FindsWhatAListOfAllThatWasPutInFindsAndTheKeysAreThoseOfThePrompt) {
  const Engine engine = PrefixStoreOf::engine(GetParam());
  PrefixStore store(engine, std::int64_t{1} << 30);
  std::mt19937 random(3);
  std::vector<Tokens> known;
  for (int round = 0; round < GetParam().rounds; ++round) {
    const Tokens tokens = repeated(tokens_of_three(random), GetParam().repeats);
    const HeldPrefix prefix = store.match(tokens);
    ASSERT_EQ(prefix.tokens.size(), longest_common(known, tokens));
    ASSERT_TRUE(std::ranges::equal(prefix.tokens, std::span(tokens).first(prefix.tokens.size())));
    if (round % 10 == 0) {
      EXPECT_LT(
          testing::relative_difference(logits_behind(engine, prefix, tokens), fed_with(engine, tokens).last_logits()),
          testing::tolerance(ElementType::float32));
    }
    if (random() % 8 == 0 && !known.empty()) {
      const Tokens gone = known[random() % known.size()];
      store.erase(gone);
      std::erase_if(known, [&](const Tokens& other) {
        return other.size() >= gone.size() && std::equal(gone.begin(), gone.end(), other.begin());
      });
      // What is left of it is what others begin with.
      Tokens longer = gone;
      longer.push_back(1);
      ASSERT_EQ(store.match(longer).tokens.size(), longest_common(known, longer));
    } else {
      store.insert(tokens, fed_with(engine, tokens), 0);
      known.push_back(tokens);
    }
  }
  EXPECT_GT(store.counts().hit_tokens, 5 * GetParam().rounds / 4);
  store.clear();
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_TRUE(store.match(known.back()).tokens.empty());
}

TEST(PrefixStore, KeepsToItsSizeDropsTheOldestFirstAndLeavesMatchesValid) {
  const auto model = small_model(testing::small_config());
  const Engine engine(model, reference_plan());
  PrefixStore store(engine, 20 * kSmallTokenBytes);
  const Tokens first{1, 2, 3, 4, 5, 6, 7, 8};
  const Tokens second{1, 2, 3, 9, 9, 9, 9, 9};
  store.insert(first, fed_with(engine, first), 0);
  store.insert(second, fed_with(engine, second), 0);
  EXPECT_EQ(store.bytes(), 13 * kSmallTokenBytes) << "three tokens are shared";
  const HeldPrefix match = store.match(first);
  ASSERT_EQ(match.tokens.size(), 7U);
  const Tokens third{30, 31, 32, 33, 34, 35, 36, 37, 38, 39};
  store.insert(third, fed_with(engine, third), 0);
  EXPECT_EQ(store.bytes(), 18 * kSmallTokenBytes);
  EXPECT_EQ(store.counts().evicted_tokens, 5) << "the end of the second, which was used longest ago";
  EXPECT_EQ(store.match(second).tokens.size(), 3U);
  store.clear();
  EXPECT_LT(testing::relative_difference(logits_behind(engine, match, first), fed_with(engine, first).last_logits()),
            testing::tolerance(ElementType::float32));
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    const Tokens tokens = tokens_of_three(random);
    const HeldPrefix prefix = store.match(tokens);
    ASSERT_LT(prefix.tokens.size(), tokens.size());
    ASSERT_TRUE(std::ranges::equal(prefix.tokens, std::span(tokens).first(prefix.tokens.size())));
    store.insert(tokens, fed_with(engine, tokens), 0);
    ASSERT_LE(store.bytes(), 20 * kSmallTokenBytes);
  }
  const Tokens large(30, 5);
  store.insert(large, fed_with(engine, large), 0);
  EXPECT_EQ(store.counts().too_large, 1);
  EXPECT_THROW(PrefixStore(engine, kSmallTokenBytes - 1), std::invalid_argument);
  EXPECT_THROW(PrefixStore(Engine(small_model(testing::small_t5_config()), reference_plan()), 1 << 20),
               std::invalid_argument);
}

/// The log-probabilities of a prompt's tokens, as its first choice returns them, with and without a store.
std::vector<float> prompt_log_probs(const Engine& engine, const Tokens& tokens, PrefixStore* store) {
  const SessionOptions options{
      .batch_size = 1, .max_tokens = most_tokens(engine), .details = {{.prompt = {.log_prob = true}}}};
  const StepResult step = begin_samples(engine, options, std::vector<Tokens>{tokens}, 1, store).choose();
  std::vector<float> log_probs;
  std::ranges::transform(step.details.front().prompt, std::back_inserter(log_probs), &TokenDetails::log_prob);
  return log_probs;
}

TEST_P(PrefixStoreOf, KnowsTheLogProbabilitiesOfTheTokensThatItHolds) {
  const Engine engine = PrefixStoreOf::engine(GetParam());
  PrefixStore store(engine, std::int64_t{1} << 30);
  std::mt19937 random(5);
  for (int round = 0; round < GetParam().rounds / 4; ++round) {
    const Tokens tokens = repeated(tokens_of_three(random), GetParam().repeats);
    const std::vector<float> expected = prompt_log_probs(engine, tokens, nullptr);
    const std::vector<float> found = prompt_log_probs(engine, tokens, &store);
    ASSERT_EQ(expected.size() + 1, tokens.size());
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t token = 0; token < found.size(); ++token) {
      ASSERT_NEAR(found[token], expected[token], 1e-4) << round << ", token " << token;
    }
  }
  EXPECT_GT(store.counts().hit_tokens, GetParam().rounds / 4);
}

TEST_P(PrefixStoreOf, DoesNotCountWhatHasNoLogProbabilitiesWhereTheyAreNeeded) {
  const Engine engine = PrefixStoreOf::engine(GetParam());
  PrefixStore store(engine, std::int64_t{1} << 30);
  const Tokens tokens = repeated({1, 2, 3}, GetParam().repeats);
  Session session = fed_with(engine, tokens);
  session.choose();  // Returns them, so that the session has them no longer.
  store.insert(tokens, session, 0);
  EXPECT_EQ(store.match(tokens, true).tokens.size(), 0U);
  EXPECT_EQ(store.match(tokens).tokens.size(), tokens.size() - 1);
  store.insert(tokens, fed_with(engine, tokens), 0);
  const HeldPrefix known = store.match(tokens, true);
  EXPECT_EQ(known.tokens.size(), tokens.size() - 1) << "a later prompt brought them";
  EXPECT_EQ(known.log_probs.size(), known.tokens.size());
}

}  // namespace
}  // namespace decodelab
