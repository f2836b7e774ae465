// Continuous batching: whatever is filtered and put together on the way, each row decodes what it decodes alone.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "engine/tensor.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::arms_of_every_variant;
using testing::engine_for;
using testing::small_config;
using testing::small_model;

/// Enough to pass two growths of every growing cache.
constexpr std::size_t kTokens = 18;

using Tokens = std::vector<std::vector<std::int64_t>>;

/// Prompts of many lengths; rows of one length meet too.
Tokens prompts() {
  return {{5, 17, 96, 3, 22, 41, 8, 60, 12}, {7},     {1, 2, 3, 4}, {90, 80, 70, 60, 50, 40}, {9, 9, 9, 1},
          {33, 34, 35, 36, 37, 38, 39, 40},  {64, 2}, {11}};
}

/// What a request of each prompt wants: greedy, penalized and sampled rows.
std::vector<SamplingParameters> mixed_sampling() {
  return {{.repetition_penalty = 1.5},
          {.sample = true, .temperature = 1.3, .seed = 11},
          {.sample = true,
           .temperature = 2,
           .top_k = 20,
           .top_p = 0.9,
           .typical_p = 0.8,
           .repetition_penalty = 1.2,
           .seed = 12},
          {},
          {.sample = true, .temperature = 2, .seed = 11},
          {.sample = true, .top_p = 0.8, .seed = 0xffffffffffffffffu},
          {},
          {.sample = true, .temperature = 1.5, .repetition_penalty = 2, .seed = 5}};
}

/// What each row decodes alone.
Tokens alone(const Engine& engine, const std::vector<SamplingParameters>& sampling) {
  Tokens tokens;
  for (std::size_t row = 0; row < prompts().size(); ++row) {
    tokens.push_back(
        generate(engine,
                 {.prompts = {prompts()[row]}, .max_tokens = kTokens, .details = {}, .sampling = {sampling[row]}})
            .front()
            .token_ids);
  }
  return tokens;
}

/// A server that does at random what servers do: it takes requests in, steps batches, puts them together, permutes and
/// drops rows.
class Server {
 public:
  Server(const Engine& engine, const std::vector<SamplingParameters>& sampling, std::uint32_t seed)
      : engine_(engine), sampling_(sampling), random_(seed), decoded_(prompts().size()) {
    waiting_.resize(prompts().size());
    std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
    std::ranges::shuffle(waiting_, random_);
  }

  /// Runs until every request is done or dropped.
  void run() {
    while (!waiting_.empty() || !batches_.empty()) {
      const std::size_t action = below(8);
      if (!waiting_.empty() && (action == 0 || batches_.empty())) {
        take_in();
      } else if (action == 1 && batches_.size() > 1) {
        put_together();
      } else if (action == 2 && !batches_.empty()) {
        permute();
      } else if (!batches_.empty()) {
        step();
      }
    }
  }

  /// Tokens of each request: all of them, or fewer where it was dropped.
  const Tokens& decoded() const { return decoded_; }
  std::size_t filters() const { return filters_; }
  std::size_t concatenations() const { return concatenations_; }

 private:
  struct Batch {
    Session session;
    std::vector<std::size_t> requests;  ///< One a row.
  };

  std::size_t below(std::size_t count) { return random_() % count; }
  Batch& any_batch() { return batches_[below(batches_.size())]; }

  void take_in() {
    const std::size_t count = std::min(waiting_.size(), 1 + below(3));
    const std::vector<std::size_t> requests(waiting_.end() - static_cast<std::ptrdiff_t>(count), waiting_.end());
    waiting_.resize(waiting_.size() - count);
    Tokens ids;
    std::vector<SamplingParameters> sampling;
    std::size_t longest = 0;
    for (const std::size_t request : requests) {
      ids.push_back(prompts()[request]);
      sampling.push_back(sampling_[request]);
      longest = std::max(longest, ids.back().size());
    }
    Session session(engine_, {.batch_size = static_cast<std::int64_t>(count),
                              .max_tokens = static_cast<std::int64_t>(longest + kTokens) - 1,
                              .details = {},
                              .sampling = sampling});
    const StepResult first = session.prefill(ids);
    batches_.push_back({.session = std::move(session), .requests = requests});
    note(batches_.back(), first);
  }

  void step() {
    Batch& batch = any_batch();
    note(batch, batch.session.decode());
    std::vector<std::int64_t> open;
    for (std::size_t row = 0; row < batch.requests.size(); ++row) {
      if (decoded_[batch.requests[row]].size() < kTokens) {
        open.push_back(static_cast<std::int64_t>(row));
      }
    }
    if (open.size() < batch.requests.size()) {
      keep(batch, open);
    }
  }

  void permute() {
    Batch& batch = any_batch();
    std::vector<std::int64_t> rows(batch.requests.size());
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    std::ranges::shuffle(rows, random_);
    if (rows.size() > 2 && below(4) == 0) {
      rows.pop_back();
    }
    keep(batch, rows);
  }

  void put_together() {
    std::swap(any_batch(), batches_.back());
    Batch arriving = std::move(batches_.back());
    batches_.pop_back();
    Batch& batch = any_batch();
    batch.session.concatenate(std::move(arriving.session));
    batch.requests.insert(batch.requests.end(), arriving.requests.begin(), arriving.requests.end());
    ++concatenations_;
  }

  void keep(Batch& batch, const std::vector<std::int64_t>& rows) {
    if (rows.empty()) {
      std::swap(batch, batches_.back());
      batches_.pop_back();
      return;
    }
    batch.session.filter(rows);
    std::vector<std::size_t> requests;
    for (const std::int64_t row : rows) {
      requests.push_back(batch.requests[static_cast<std::size_t>(row)]);
    }
    batch.requests = std::move(requests);
    ++filters_;
  }

  void note(const Batch& batch, const StepResult& step) {
    const std::vector<float> logits = batch.session.last_logits();
    EXPECT_TRUE(std::ranges::none_of(logits, [](float value) { return std::isnan(value); }));
    for (std::size_t row = 0; row < batch.requests.size(); ++row) {
      decoded_[batch.requests[row]].push_back(step.token_ids[row]);
    }
  }

  const Engine& engine_;
  const std::vector<SamplingParameters>& sampling_;
  std::mt19937 random_;
  std::vector<std::size_t> waiting_;
  std::vector<Batch> batches_;
  Tokens decoded_;
  std::size_t filters_ = 0;
  std::size_t concatenations_ = 0;
};

/// Serves all requests in some orders, and compares what came of each with what it decodes alone.
void expect_as_alone(const Engine& engine, const std::vector<SamplingParameters>& sampling, const Tokens& expected,
                     const std::string& what) {
  std::size_t filters = 0;
  std::size_t concatenations = 0;
  std::size_t whole = 0;
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    Server server(engine, sampling, seed);
    server.run();
    for (std::size_t request = 0; request < expected.size(); ++request) {
      const std::vector<std::int64_t>& got = server.decoded()[request];
      ASSERT_LE(got.size(), expected[request].size());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), expected[request].begin()))
          << what << ", schedule " << seed << ", request " << request;
      whole += got.size() == kTokens ? 1 : 0;
    }
    filters += server.filters();
    concatenations += server.concatenations();
  }
  EXPECT_GE(filters, 9u) << what;
  EXPECT_GE(concatenations, 3u) << what;
  EXPECT_GE(whole, 2 * expected.size()) << what << ": nearly all requests were dropped";
}

std::vector<std::string> arms_that_run(const Model& model) {
  std::vector<std::string> arms = arms_of_every_variant();
  for (const Preset& preset : presets()) {
    arms.push_back(preset.name);
  }
  std::erase_if(arms, [&model](const std::string& arm) {
    return !unsupported_reason(parse_arm(arm), {.config = model.config(), .dtype = model.dtype(), .device = "cpu"})
                .empty();
  });
  return arms;
}

/// Memory that nobody has written reads as NaN, or as the largest integer, for as long as this lives.
class PoisonedMemory {
 public:
  PoisonedMemory() {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
    at::globalContext().setDeterministicFillUninitializedMemory(true);
  }
  ~PoisonedMemory() { at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false); }
  PoisonedMemory(const PoisonedMemory&) = delete;
  PoisonedMemory& operator=(const PoisonedMemory&) = delete;
};

TEST(Batching, OfEveryVariantGivesTheTokensThatTheReferenceGivesTheRowsAlone) {
  const std::vector<SamplingParameters> greedy(prompts().size());
  for (const ModelConfig& config : {small_config(), small_config(false), small_config(true, Activation::gelu_erf),
                                    testing::small_gemma_config(), testing::small_t5_config()}) {
    const auto model = small_model(config);
    const Tokens expected = alone(engine_for("causal", model), greedy);
    for (const std::string& arm : arms_that_run(*model)) {
      expect_as_alone(engine_for(arm, model), greedy, expected, arm);
    }
  }
}

TEST(Batching, OfEveryVariantReadsNoMemoryThatNobodyWrote) {
  const std::vector<SamplingParameters> greedy(prompts().size());
  for (const ModelConfig& config : {small_config(), small_config(true, Activation::gelu_erf),
                                    testing::small_gemma_config(), testing::small_t5_config()}) {
    const auto model = small_model(config);
    const Tokens expected = alone(engine_for("causal", model), greedy);
    const PoisonedMemory poisoned;
    ASSERT_TRUE(at::empty({8}).isnan().all().item<bool>()) << "the poison does not work";
    for (const std::string& arm : arms_that_run(*model)) {
      expect_as_alone(engine_for(arm, model), greedy, expected, arm);
    }
  }
}

TEST(Batching, TakesARowsRandomNumbersPenaltiesAndWarpersAlong) {
  const auto model = small_model(small_config());
  for (const std::string rng : {"", ",+philox-rng"}) {
    const Tokens expected = alone(engine_for("causal" + rng, model), mixed_sampling());
    for (const std::string arm : {"causal", "causal,+vectorized-choice", "bigcode", "native"}) {
      expect_as_alone(engine_for(arm + rng, model), mixed_sampling(), expected, arm + rng);
    }
    const PoisonedMemory poisoned;
    expect_as_alone(engine_for("native" + rng, model), mixed_sampling(), expected, "native" + rng + ", poisoned");
  }
}

TEST(Batching, WithOneGeneratorForAllRowsKeepsGreedyRowsAndDrawsTokensOfTheVocabulary) {
  const auto model = small_model(small_config());
  const std::vector<SamplingParameters> sampling = mixed_sampling();
  const Tokens expected = alone(engine_for("causal", model), sampling);
  for (const std::string arm : {"causal,+batch-rng", "bigcode,+batch-rng"}) {
    const Engine engine = engine_for(arm, model);
    Server server(engine, sampling, 1);
    server.run();
    for (std::size_t request = 0; request < expected.size(); ++request) {
      const std::vector<std::int64_t>& got = server.decoded()[request];
      if (!sampling[request].sample) {
        EXPECT_TRUE(std::equal(got.begin(), got.end(), expected[request].begin())) << arm << ", request " << request;
      }
      EXPECT_TRUE(std::ranges::all_of(got, [](std::int64_t token) { return token >= 0 && token < 97; }));
    }
  }
}

TEST(Batching, LetsTwoForksWithOneSeedGoOnAlike) {
  const auto model = small_model(small_config());
  for (const std::string arm : {"causal", "native,+philox-rng"}) {
    const Engine engine = engine_for(arm, model);
    Session session(engine, {.batch_size = 2,
                             .max_tokens = 20,
                             .details = {},
                             .sampling = {{.repetition_penalty = 2}, {.sample = true, .seed = 3}}});
    session.prefill(Tokens{{1, 2, 3}, {4}});
    session.fork(std::vector<std::int64_t>{1, 0, 1}, std::vector<std::uint64_t>{9, 9, 9});
    for (int step = 0; step < 6; ++step) {
      const StepResult result = session.decode();
      EXPECT_EQ(result.token_ids[0], result.token_ids[2]) << arm;
    }
  }
}

TEST(Batching, TruncatesRowsThatCameTogetherWithTheirPenalties) {
  const auto model = small_model(small_config());
  for (const std::string arm : {"causal", "causal,+vectorized-choice", "native"}) {
    const Engine engine = engine_for(arm, model);
    const auto begun = [&](const std::vector<std::int64_t>& prompt, const SamplingParameters& wishes) {
      Session session(engine, {.batch_size = 1, .max_tokens = 30, .details = {}, .sampling = {wishes}});
      session.prefill(Tokens{prompt});
      return session;
    };
    Session session = begun({9, 8, 7, 6}, {});
    session.decode();
    Session arriving = begun({1, 2, 3, 4}, {.repetition_penalty = 8});
    arriving.decode();
    session.concatenate(std::move(arriving));
    session.filter(std::vector<std::int64_t>{1, 0});
    std::vector<std::int64_t> next;
    for (int step = 0; step < 4; ++step) {
      next = session.decode().token_ids;
    }
    ASSERT_EQ(session.lengths(), (std::vector<std::int64_t>{9, 9}));
    Tokens steps;
    for (int step = 0; step < 8; ++step) {
      steps.push_back(session.decode().token_ids);
      for (int before = 0; before < step; ++before) {
        EXPECT_NE(steps[static_cast<std::size_t>(before)][0], steps.back()[0])
            << arm << ": a penalty of 8 let it come back";
      }
    }
    session.truncate(9);
    session.force_tokens(next);
    for (const std::vector<std::int64_t>& expected : steps) {
      EXPECT_EQ(session.decode().token_ids, expected) << arm;
    }
  }
}

TEST(Batching, RefusesWhatCannotBeOneBatch) {
  const auto model = small_model(small_config());
  const Engine engine = engine_for("causal", model);
  const Engine other_engine = engine_for("causal", model);
  const auto begun = [](const Engine& by, const DetailsRequest& details) {
    Session session(by, {.batch_size = 2, .max_tokens = 20, .details = details});
    session.prefill(Tokens{{1, 2, 3}, {4}});
    return session;
  };
  Session session = begun(engine, {});
  EXPECT_THROW(session.concatenate(begun(other_engine, {})), std::invalid_argument);
  EXPECT_THROW(session.concatenate(Session(engine, {.batch_size = 1, .max_tokens = 20, .details = {}})),
               std::logic_error);
  EXPECT_THROW(session.filter(std::vector<std::int64_t>{}), std::invalid_argument);
  EXPECT_THROW(session.filter(std::vector<std::int64_t>{0, 2}), std::invalid_argument);
  EXPECT_THROW(session.filter(std::vector<std::int64_t>{-1}), std::invalid_argument);
  EXPECT_THROW(session.filter(std::vector<std::int64_t>{1, 1}), std::invalid_argument) << "fork() is for that";
  EXPECT_THROW(session.fork(std::vector<std::int64_t>{}), std::invalid_argument);
  EXPECT_THROW(session.fork(std::vector<std::int64_t>{2}), std::invalid_argument);
  EXPECT_THROW(session.fork(std::vector<std::int64_t>{0}, std::vector<std::uint64_t>{1, 2}), std::invalid_argument);
  try {
    session.concatenate(begun(engine, {.rank = true}));
    FAIL() << "sessions with different details were put together";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("different details"), std::string::npos) << error.what();
  }
  // Nothing of this has changed the session.
  Session untouched = begun(engine, {});
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(session.decode().token_ids, untouched.decode().token_ids);
  }
}

TEST(Batching, GivesDetailsAndLogitsOfTheRowsThatAreThere) {
  const auto model = small_model(small_config());
  const Engine engine = engine_for("native", model);
  const DetailsRequest details{.token_log_prob = true, .rank = true};
  const auto begun = [&](const Tokens& ids) {
    Session session(engine,
                    {.batch_size = static_cast<std::int64_t>(ids.size()), .max_tokens = 20, .details = details});
    session.prefill(ids);
    return session;
  };
  Session session = begun({{1, 2, 3}, {4}});
  const std::vector<float> before = session.last_logits();
  session.filter(std::vector<std::int64_t>{1, 0});
  const std::vector<float> after = session.last_logits();
  ASSERT_EQ(after.size(), before.size());
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + 97, before.begin() + 97));
  EXPECT_TRUE(std::equal(after.begin() + 97, after.end(), before.begin()));
  Session arriving = begun({{5, 6}});
  const std::vector<float> theirs = arriving.last_logits();
  session.concatenate(std::move(arriving));
  EXPECT_EQ(session.lengths(), (std::vector<std::int64_t>{1, 3, 2}));
  const std::vector<float> together = session.last_logits();
  ASSERT_EQ(together.size(), 3u * 97u);
  EXPECT_TRUE(std::equal(together.begin() + 2 * 97, together.end(), theirs.begin()));
  const StepResult result = session.decode();
  ASSERT_EQ(result.details.size(), 3u);
  for (const TokenDetails& row : result.details) {
    EXPECT_EQ(row.rank, 1);
    EXPECT_LT(row.token_log_prob, 0);
  }
}

}  // namespace
}  // namespace decodelab
