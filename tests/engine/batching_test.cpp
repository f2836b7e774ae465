// Requests of random lengths, stops, patterns and aborts under every rule of batching: what sanitizers look at.
#include "engine/batching.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "engine/layers/kv_cache.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

using testing::small_model;

/// Requests under each rule: few, or as many as DECODELAB_REQUESTS says (1250 of each are 10,000 in all, and a minute).
std::int64_t random_requests() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::int64_t kFew = 60;
#else
  constexpr std::int64_t kFew = 250;
#endif
  const char* const asked = std::getenv("DECODELAB_REQUESTS");
  return asked == nullptr ? kFew : std::atoll(asked);
}

std::shared_ptr<const MaskVocabulary> letters() {
  std::vector<std::string> texts{""};
  while (texts.size() < 97) {
    texts.emplace_back(1, static_cast<char>('a' + texts.size() % 3));
  }
  return std::make_shared<const MaskVocabulary>(texts, std::vector<std::int64_t>{0});
}

BatchRequest random_request(std::mt19937& random) {
  const auto below = [&](std::int64_t bound) { return static_cast<std::int64_t>(random()) % bound; };
  BatchRequest request{.max_tokens = 1 + below(7)};
  for (std::int64_t token = 1 + below(12); token > 0; --token) {
    request.prompt.push_back(1 + below(3));
  }
  if (random() % 2 == 0) {
    request.sampling = {.sample = true, .temperature = 2, .seed = random() % 1000};
    request.samples = 1 + below(3);
  }
  if (random() % 4 == 0) {
    request.sampling.repetition_penalty = 1.4;
  }
  if (random() % 4 == 0) {
    request.rules = {.regex = "(ab|c)+"};
  }
  if (random() % 4 == 0) {
    const std::int64_t last = below(97);
    request.stops = [last](std::size_t, std::int64_t token) { return token >= last; };
  }
  return request;
}

/// Submits requests while others decode, and aborts some. Returns how often each was answered.
std::map<std::int64_t, int> serve_random_requests(ContinuousBatch& batch, std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::int64_t requests = random_requests();
  std::map<std::int64_t, int> answers;
  std::int64_t submitted = 0;
  while (submitted < requests || !batch.idle()) {
    for (std::uint32_t count = random() % 4; count > 0 && submitted < requests; --count) {
      EXPECT_EQ(batch.submit(random_request(random)), submitted);
      ++submitted;
    }
    if (random() % 8 == 0 && submitted > 0) {
      batch.abort(static_cast<std::int64_t>(random()) % submitted);
    }
    for (const FinishedRequest& finished : batch.step()) {
      ++answers[finished.id];
      EXPECT_TRUE(std::ranges::none_of(finished.samples, &Completion::open));
    }
  }
  return answers;
}

TEST(RandomRequests, AreEachAnsweredOnceUnderEveryRule) {
  const auto model = small_model(testing::small_config());
  using Rows = BatchingRule::Rows;
  for (const Rows rows : {Rows::fixed_at_start, Rows::as_needed, Rows::powers_of_two, Rows::all}) {
    for (const auto& [fork, prefix] :
         {std::pair(ForkWay::prefill_each, PrefixReuse::copied), std::pair(ForkWay::copied, PrefixReuse::copied),
          std::pair(ForkWay::shared, PrefixReuse::shared)}) {
      EnginePlan plan = reference_plan();
      plan.batching.set_reference({.rows = rows, .every = rows == Rows::as_needed ? 2 : 1, .chunk = 5});
      plan.fork.set_reference(fork);
      plan.prefix_reuse.set_reference(prefix);
      if (prefix == PrefixReuse::shared) {
        plan.kv_growth.set_reference(make_paged_cache);
      }
      const Engine engine(model, plan);
      PrefixStore store(engine, prefix == PrefixReuse::shared ? 1 << 18 : 1 << 14);
      ContinuousBatch batch(engine, {.max_rows = 5,
                                     .max_tokens_in_flight = 150,
                                     .eos_token_ids = {0},
                                     .vocabulary = letters(),
                                     .prefixes = &store});
      const std::map<std::int64_t, int> answers = serve_random_requests(batch, 7);
      EXPECT_EQ(std::ssize(answers), random_requests());
      EXPECT_TRUE(std::ranges::all_of(answers, [](const auto& answer) { return answer.second == 1; }));
      EXPECT_EQ(batch.waiting(), 0);
      EXPECT_GT(batch.counts().reused_tokens, 0);
      if (rows != Rows::all) {
        EXPECT_EQ(batch.cache_bytes(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace decodelab
