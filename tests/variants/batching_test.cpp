// Batches that change while they decode: a request gets what it would get alone, is answered once, and leaves no
// memory.
#include "engine/batching.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "bench/measure/torch_counters.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::small_model;

using Prompts = std::vector<std::vector<std::int64_t>>;

std::shared_ptr<const MaskVocabulary> letters_of_ids() {
  std::vector<std::string> texts{""};
  while (texts.size() < 97) {
    texts.emplace_back(1, static_cast<char>('a' + texts.size() % 3));
  }
  return std::make_shared<const MaskVocabulary>(texts, std::vector<std::int64_t>{0});
}

/// Requests of many kinds, drawn from a seed.
std::vector<BatchRequest> mixed_requests(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
  };
  std::vector<BatchRequest> requests;
  for (std::size_t index = 0; index < count; ++index) {
    BatchRequest request;
    for (std::int64_t token = 1 + below(20); token > 0; --token) {
      request.prompt.push_back(1 + below(96));
    }
    request.max_tokens = 1 + below(9);
    if (below(2) == 0) {
      request.sampling = {.sample = true, .temperature = 1.5, .seed = static_cast<std::uint64_t>(below(1000))};
      request.samples = 1 + below(3);
    }
    if (below(4) == 0) {
      request.sampling.repetition_penalty = 1.3;
    }
    if (below(4) == 0) {
      request.rules = {.regex = "(ab|c)+"};
    }
    if (below(5) == 0) {
      request.rules.min_tokens = 3;
    }
    if (below(4) == 0) {
      const std::int64_t last = below(97);
      request.stops = [last](std::size_t, std::int64_t token) { return token >= last; };
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<Completion> alone(const Engine& engine, const BatchRequest& request) {
  GenerationRequest whole{.prompts = {request.prompt},
                          .max_tokens = request.max_tokens,
                          .eos_token_ids = {0},
                          .details = {},
                          .sampling = {request.sampling},
                          .samples = request.samples,
                          .rules = {request.rules},
                          .vocabulary = letters_of_ids()};
  if (request.stops) {
    whole.stops = request.stops;
  }
  return generate(engine, whole);
}

void expect_same(const std::vector<Completion>& got, const std::vector<Completion>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t sample = 0; sample < expected.size(); ++sample) {
    EXPECT_EQ(got[sample].token_ids, expected[sample].token_ids) << what << ", sample " << sample;
    EXPECT_EQ(got[sample].finish_reason, expected[sample].finish_reason) << what << ", sample " << sample;
    EXPECT_EQ(got[sample].seed, expected[sample].seed) << what << ", sample " << sample;
  }
}

std::map<std::int64_t, std::vector<Completion>> run_all(ContinuousBatch& batch) {
  std::map<std::int64_t, std::vector<Completion>> all;
  while (!batch.idle()) {
    for (FinishedRequest& finished : batch.step()) {
      EXPECT_FALSE(all.contains(finished.id)) << "answered twice";
      all[finished.id] = std::move(finished.samples);
    }
  }
  return all;
}

TEST(ContinuousBatch, GivesEachRequestWhatItGetsAloneUnderEveryPresetAndChunk) {
  const std::vector<BatchRequest> requests = mixed_requests(18, 3);
  for (const ModelConfig& config :
       {testing::small_config(), testing::small_llama_config(), testing::small_t5_config()}) {
    const auto model = small_model(config);
    const Engine reference = engine_for("causal", model);
    std::vector<std::vector<Completion>> expected;
    for (const BatchRequest& request : requests) {
      expected.push_back(alone(reference, request));
    }
    for (const Preset& preset : presets()) {
      if (!unsupported_reason(parse_arm(preset.name),
                              {.config = config, .dtype = ElementType::float32, .device = "cpu"})
               .empty()) {
        continue;
      }
      const Engine engine = engine_for(preset.name, model);
      for (const std::int64_t chunk : {0, 1, 7}) {
        ContinuousBatch batch(
            engine, {.max_rows = 5, .prefill_chunk = chunk, .eos_token_ids = {0}, .vocabulary = letters_of_ids()});
        for (const BatchRequest& request : requests) {
          batch.submit(request);
        }
        const auto got = run_all(batch);
        ASSERT_EQ(got.size(), requests.size());
        for (const auto& [id, samples] : got) {
          expect_same(samples, expected[static_cast<std::size_t>(id)],
                      preset.name + ", chunks of " + std::to_string(chunk) + ", request " + std::to_string(id));
        }
        EXPECT_LE(batch.counts().most_rows, 5);
        EXPECT_EQ(batch.cache_bytes(), 0);
      }
    }
  }
}

/// What the rows of a batch do under a rule, in words that a test can ask for.
struct RuleCase {
  std::string arm;
  bool joins = false;   ///< Rows join others by copies of all.
  bool places = false;  ///< Rows take the places of idle ones.
  bool idles = false;
};

TEST(ContinuousBatch, GivesEachRequestWhatItGetsAloneUnderEveryRule) {
  const std::vector<RuleCase> rules{
      {.arm = "causal", .idles = true},
      {.arm = "causal,+concatenate-filter", .joins = true},
      {.arm = "causal,+concatenate-filter:steps=3", .joins = true, .idles = true},
      {.arm = "causal,+padded-batch", .places = true, .idles = true},
      {.arm = "causal,+slot-batch", .places = true, .idles = true},
      {.arm = "causal,+kv-grow,+merged-kv,+slot-batch", .places = true, .idles = true},
      {.arm = "native,-concatenate-filter", .idles = true},
      {.arm = "native,-concatenate-filter,+padded-batch:chunk=4", .places = true, .idles = true},
      {.arm = "native,-concatenate-filter,-copied-fork,+slot-batch", .places = true, .idles = true},
      {.arm = "causal,+no-cache,+slot-batch", .places = true, .idles = true},
      {.arm = "causal,+kv-paged,+split-kv-decode,+slot-batch", .places = true, .idles = true},
      {.arm = "native,-kv-preallocated,-copied-fork,+kv-paged,+shared-fork", .joins = true},
  };
  const std::vector<BatchRequest> requests = mixed_requests(24, 11);
  for (const ModelConfig& config :
       {testing::small_config(), testing::small_gemma_config(), testing::small_t5_config()}) {
    const auto model = small_model(config);
    const Engine reference = engine_for("causal", model);
    for (const RuleCase& rule : rules) {
      if (!unsupported_reason(parse_arm(rule.arm), {.config = config, .dtype = ElementType::float32, .device = "cpu"})
               .empty()) {
        continue;
      }
      const Engine engine = engine_for(rule.arm, model);
      ContinuousBatch batch(engine, {.max_rows = 6, .eos_token_ids = {0}, .vocabulary = letters_of_ids()});
      std::map<std::int64_t, std::vector<Completion>> got;
      for (const BatchRequest& request : requests) {  // They come while others decode.
        batch.submit(request);
        for (FinishedRequest& finished : batch.step()) {
          got[finished.id] = std::move(finished.samples);
        }
      }
      got.merge(run_all(batch));
      ASSERT_EQ(got.size(), requests.size());
      for (const auto& [id, samples] : got) {
        expect_same(samples, alone(reference, requests[static_cast<std::size_t>(id)]),
                    config.family + ", " + rule.arm + ", request " + std::to_string(id));
      }
      const BatchCounts counts = batch.counts();
      EXPECT_EQ(counts.joined_rows > 0, rule.joins || rule.arm.find("padded") != std::string::npos) << rule.arm;
      EXPECT_EQ(counts.placed_rows > 0, rule.places) << rule.arm;
      EXPECT_EQ(counts.idle_rows > 0, rule.idles) << rule.arm;
      EXPECT_LE(counts.most_rows, 6);
      if (rule.arm.find("slot-batch") != std::string::npos) {
        EXPECT_EQ(counts.decoded_rows + counts.idle_rows, 6 * counts.decode_steps) << "all rows, in every step";
        EXPECT_EQ(counts.dropped_rows, 0);
      } else {
        EXPECT_EQ(batch.cache_bytes(), 0);
      }
    }
  }
}

TEST(Session, StepsWithWhatItHadWhenItLastHadAsManyRows) {
  const Engine engine = engine_for("native", small_model(testing::small_config()));
  Session session(engine, {.batch_size = 3, .max_tokens = 20});
  session.prefill(Prompts{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  session.decode();
  session.filter(std::vector<std::int64_t>{0, 2});
  session.decode();
  session.pad(3);
  StepCounters counting("cpu");
  counting.restart();
  session.decode();
  for (const auto& [name, value] : counting.counters()) {
    EXPECT_FALSE(name.ends_with("allocations")) << name << " " << value;
  }
}

TEST(Session, PutsRowsInThePlacesOfOthersAndRefusesWhatIsNone) {
  const auto model = small_model(testing::small_config());
  for (const char* arm : {"causal", "native", "bigcode,+kv-grow:tokens=4"}) {
    const Engine engine = engine_for(arm, model);
    const auto alone = [&](const std::vector<std::int64_t>& prompt, int steps) {
      Session session(engine, {.batch_size = 1, .max_tokens = 30});
      std::vector<std::int64_t> tokens = session.prefill(Prompts{prompt}).token_ids;
      for (int step = 1; step < steps; ++step) {
        tokens.push_back(session.decode().token_ids.front());
      }
      return tokens;
    };
    const Prompts prompts{{1, 2, 3}, {4, 5, 6, 7, 8}, {9}};
    Session session(engine, {.batch_size = 3, .max_tokens = 12});
    session.prefill(prompts);
    session.decode();
    const std::vector<std::int64_t> longer{11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
    const auto other = [&] {
      Session one(engine, {.batch_size = 1, .max_tokens = 30});
      one.prefill(Prompts{longer});
      return one;
    };
    for (const auto& places : Prompts{{3}, {-1}, {0, 1}, {}}) {
      EXPECT_THROW(session.put(places, other()), std::invalid_argument);
    }
    session.put(std::vector<std::int64_t>{1}, other());
    EXPECT_EQ(session.lengths(), (std::vector<std::int64_t>{4, 14, 2}));
    const StepResult next = session.decode();
    EXPECT_EQ(next.token_ids[0], alone(prompts[0], 3).back()) << arm;
    EXPECT_EQ(next.token_ids[1], alone(longer, 2).back()) << arm;
    EXPECT_EQ(next.token_ids[2], alone(prompts[2], 3).back()) << arm;
    EXPECT_THROW(session.pad(2), std::invalid_argument);
  }
}

TEST(ContinuousBatch, StartsTogetherUnderTheReferencesRule) {
  const auto model = small_model(testing::small_config());
  const Engine engine = engine_for("causal", model);
  ContinuousBatch batch(engine, {.max_rows = 2});
  for (const std::int64_t tokens : {2, 5, 3}) {
    batch.submit({.prompt = {1, 2, 3}, .max_tokens = tokens});
  }
  for (int step = 0; step < 4; ++step) {
    batch.step();
    EXPECT_EQ(batch.waiting(), 1) << "the third waits until both have ended";
  }
  EXPECT_EQ(batch.counts().idle_rows, 3) << "the first was computed beside the second to the end";
  run_all(batch);
  EXPECT_EQ(batch.counts().decode_steps, 6);
}

TEST(ContinuousBatch, AnswersEveryRequestOnceWhateverIsAbortedAndWhenItCame) {
  const auto model = small_model(testing::small_config());
  const Engine engine = engine_for("native", model);
  ContinuousBatch batch(engine, {.max_rows = 8,
                                 .max_tokens_in_flight = 150,
                                 .prefill_chunk = 6,
                                 .eos_token_ids = {0},
                                 .vocabulary = letters_of_ids()});
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::size_t kRequests = 300;
#else
  constexpr std::size_t kRequests = 1500;
#endif
  const std::vector<BatchRequest> requests = mixed_requests(kRequests, 17);
  std::mt19937 random(5);
  std::map<std::int64_t, int> answers;
  std::map<std::string, int> reasons;
  std::size_t submitted = 0;
  while (submitted < requests.size() || !batch.idle()) {
    for (std::uint32_t count = random() % 4; count > 0 && submitted < requests.size(); --count) {
      EXPECT_EQ(batch.submit(requests[submitted]), static_cast<std::int64_t>(submitted));
      ++submitted;
    }
    if (random() % 8 == 0 && submitted > 0) {
      batch.abort(static_cast<std::int64_t>(random() % submitted));
    }
    for (const FinishedRequest& finished : batch.step()) {
      ++answers[finished.id];
      for (const Completion& sample : finished.samples) {
        ++reasons[sample.finish_reason];
      }
    }
  }
  EXPECT_EQ(answers.size(), requests.size());
  EXPECT_TRUE(std::ranges::all_of(answers, [](const auto& answer) { return answer.second == 1; }));
  for (const char* const reason : {"eos", "stop", "length", "aborted"}) {
    EXPECT_GT(reasons[reason], 0) << reason;
  }
  EXPECT_FALSE(reasons.contains("")) << "an open completion was returned";
  EXPECT_EQ(batch.cache_bytes(), 0);
  EXPECT_EQ(batch.waiting(), 0);
}

TEST(ContinuousBatch, KeepsToItsLimitsAndFeedsLongPromptsInPieces) {
  const auto model = small_model(testing::small_config());
  const Engine engine = engine_for("native", model);
  ContinuousBatch batch(engine, {.max_rows = 3, .max_tokens_in_flight = 60, .prefill_chunk = 10});
  const auto request = [](std::size_t prompt, std::int64_t tokens) {
    return BatchRequest{.prompt = std::vector<std::int64_t>(prompt, 5), .max_tokens = tokens};
  };
  batch.submit(request(4, 20));
  batch.step();
  batch.step();
  EXPECT_EQ(batch.counts().decode_steps, 2);
  batch.submit(request(30, 8));
  batch.submit(request(1, 2));
  batch.step();
  EXPECT_EQ(batch.waiting(), 1) << "23 and 37 tokens are in flight";
  batch.step();
  EXPECT_EQ(batch.counts().decode_steps, 4) << "the first request went on beside the pieces of the second";
  EXPECT_EQ(batch.counts().prefill_chunks, 3);
  EXPECT_EQ(batch.counts().most_rows, 1);
  batch.step();
  EXPECT_EQ(batch.counts().most_rows, 2);
  EXPECT_GT(batch.cache_bytes(), 0);
  run_all(batch);
  EXPECT_EQ(batch.counts().prefilled_tokens, 35);
  EXPECT_EQ(batch.cache_bytes(), 0);
}

TEST(ContinuousBatch, RefusesWhatCouldNeverRunAndGoesOn) {
  const auto model = small_model(testing::small_config());
  const Engine engine = engine_for("native", model);
  EXPECT_THROW(ContinuousBatch(engine, {.max_rows = 0}), std::invalid_argument);
  EXPECT_THROW(ContinuousBatch(engine, {.prefill_chunk = -1}), std::invalid_argument);
  ContinuousBatch batch(engine, {.max_rows = 2, .max_tokens_in_flight = 40, .vocabulary = letters_of_ids()});
  const std::vector<std::int64_t> prompt{1, 2};
  EXPECT_THROW(batch.submit({.prompt = {}}), std::invalid_argument);
  EXPECT_THROW(batch.submit({.prompt = {97}}), std::invalid_argument);
  EXPECT_THROW(batch.submit({.prompt = prompt, .max_tokens = 0}), std::invalid_argument);
  EXPECT_THROW(batch.submit({.prompt = prompt, .max_tokens = 64}), std::invalid_argument) << "positions";
  EXPECT_THROW(batch.submit({.prompt = prompt, .max_tokens = 40}), std::invalid_argument) << "tokens in flight";
  EXPECT_THROW(batch.submit({.prompt = prompt, .sampling = {.sample = true}, .samples = 3}), std::invalid_argument);
  EXPECT_THROW(batch.submit({.prompt = prompt, .sampling = {.sample = true, .temperature = 0}}), std::invalid_argument);
  EXPECT_THROW(batch.submit({.prompt = prompt, .rules = {.regex = "a\\b"}}), std::invalid_argument);
  EXPECT_THROW(batch.submit({.prompt = prompt, .rules = {.allowed_ids = {97}}}), std::invalid_argument);
  EXPECT_TRUE(batch.idle());
  EXPECT_EQ(batch.submit({.prompt = prompt, .max_tokens = 4}), 0);
  batch.abort(7);
  EXPECT_EQ(run_all(batch).at(0).front().token_ids.size(), 4U);
}

}  // namespace
}  // namespace decodelab
