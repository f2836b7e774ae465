// Requests with and without a prefix store, under arms of every kind.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "engine/batching.h"
#include "engine/prefix_store.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::small_model;

using Tokens = std::vector<std::int64_t>;

TEST(PrefixStore, LeavesWhatRequestsGetAsItIsAndSparesWhatItHolds) {
  std::mt19937 random(21);
  std::vector<BatchRequest> requests;
  std::int64_t tokens = 0;
  std::int64_t tokens_of_samples = 0;
  for (int index = 0; index < 30; ++index) {
    BatchRequest request{.prompt = {7, 8, 9, 10, 11, 12, 13, 14}, .max_tokens = 6};
    for (std::uint32_t own = 1 + random() % 6; own > 0; --own) {
      request.prompt.push_back(20 + random() % 40);
    }
    if (index % 3 == 0) {
      request.sampling = {.sample = true, .repetition_penalty = 1.4, .seed = static_cast<std::uint64_t>(index)};
      request.samples = 2;
    }
    tokens += std::ssize(request.prompt);
    tokens_of_samples += request.samples * std::ssize(request.prompt);
    requests.push_back(request);
  }
  for (const ModelConfig& config :
       {testing::small_config(), testing::small_llama_config(), testing::small_gemma_config()}) {
    const auto model = small_model(config);
    for (const std::string arm : {"native", "bigcode,+copied-prefix", "flash,+copied-prefix", "causal,+copied-prefix",
                                  "causal,+shared-prefix,+kv-paged,+split-kv-decode", "causal"}) {
      if (arm.find("kv-paged") != std::string::npos && config.has_windows()) {
        continue;  // Pages have no windows.
      }
      const Engine engine = engine_for(arm, model);
      const auto run = [&](PrefixStore* store, BatchCounts& counts) {
        ContinuousBatch batch(engine, {.max_rows = 4, .prefill_chunk = 5, .eos_token_ids = {0}, .prefixes = store});
        std::map<std::int64_t, std::vector<Tokens>> all;
        for (const BatchRequest& request : requests) {
          batch.submit(request);
        }
        while (!batch.idle()) {
          for (const FinishedRequest& finished : batch.step()) {
            for (const Completion& sample : finished.samples) {
              all[finished.id].push_back(sample.token_ids);
            }
          }
        }
        counts = batch.counts();
        return all;
      };
      BatchCounts plain;
      BatchCounts reused;
      const auto expected = run(nullptr, plain);
      PrefixStore store(engine, std::int64_t{1} << 20);
      EXPECT_EQ(run(&store, reused), expected) << config.family << ", " << arm;
      const std::int64_t fed = engine.forks() ? tokens : tokens_of_samples;
      EXPECT_EQ(plain.prefilled_tokens, fed);
      EXPECT_EQ(reused.prefilled_tokens + reused.reused_tokens, fed);
      EXPECT_EQ(reused.reused_tokens, store.counts().hit_tokens);
      if (arm == "causal") {
        EXPECT_EQ(reused.reused_tokens, 0) << "the reference reuses none";
      } else {
        EXPECT_GT(reused.reused_tokens, 8 * 20);
      }
    }
  }
}

TEST(Session, BeginsWithHeldTokensOnlyWhereItIsFresh) {
  const auto model = small_model(testing::small_config());
  const Engine engine = engine_for("native", model);
  Session session(engine, {.batch_size = 1, .max_tokens = 60, .details = {}});
  session.extend(std::vector<Tokens>{{1, 2, 3}});
  EXPECT_THROW(session.held(0, 0, 4), std::invalid_argument);
  EXPECT_THROW(session.held(1, 0, 1), std::invalid_argument);
  const HeldPrefix prefix{.tokens = {1, 2}, .pieces = {std::make_shared<const FilledCache>(session.held(0, 0, 2))}};
  EXPECT_THROW(session.begin_with({&prefix, 1}), std::logic_error);
  Session two(engine, {.batch_size = 2, .max_tokens = 20, .details = {}});
  EXPECT_THROW(two.begin_with({&prefix, 1}), std::invalid_argument);
  two.begin_with(std::vector<HeldPrefix>{prefix, {}});
  EXPECT_EQ(two.lengths(), (Tokens{2, 0}));
}

}  // namespace
}  // namespace decodelab
