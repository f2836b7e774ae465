// Recorded steps against eager ones: a recorder that calls the work again shows on a CPU what a graph would run on a
// GPU.
#include "engine/generation/graph_runner.h"

#include <tuple>

#include <gtest/gtest.h>

#include "bench/measure/torch_counters.h"
#include "engine/batching.h"
#include "engine/tensor.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::ragged_prompts;
using testing::relative_difference;
using testing::small_config;
using testing::small_model;

constexpr std::int64_t kGraphSteps = 20;
constexpr std::int64_t kMaxTokens = 40;

/// Says how often something was recorded.
class CountingRecorder final : public WorkRecorder {
 public:
  explicit CountingRecorder(int* records) : calling_(make_calling_recorder()), records_(records) {}
  void aside(const std::function<void()>& work) override { calling_->aside(work); }
  std::unique_ptr<RecordedWork> record(std::function<void()> work) override {
    ++*records_;
    return calling_->record(std::move(work));
  }

 private:
  std::unique_ptr<WorkRecorder> calling_;
  int* records_;
};

/// An engine whose decode steps are recorded by calling them, `arm` being what else is bound.
Engine recorded_engine(const std::string& arm, const std::shared_ptr<const Model>& model, GraphScope scope,
                       const GraphBuckets& buckets, int* records) {
  EnginePlan plan = bind_arm(parse_arm(arm), reference_plan());
  plan.step_runner.bind("recorded", [=](const StepRunnerOptions& options) {
    return make_graph_runner(options, scope, buckets,
                             [records] { return std::make_unique<CountingRecorder>(records); });
  });
  return Engine(model, plan);
}

std::vector<std::vector<std::int64_t>> prompts_of(std::int64_t batch_size, bool ragged) {
  std::vector<std::vector<std::int64_t>> prompts;
  for (std::int64_t row = 0; row < batch_size; ++row) {
    prompts.push_back(ragged ? ragged_prompts()[static_cast<std::size_t>(row) % 4]
                             : std::vector<std::int64_t>{row + 1, 2 * row + 5, 7});
  }
  return prompts;
}

/// The tokens and logits of a prefill and kGraphSteps decode steps.
std::pair<std::vector<std::int64_t>, std::vector<float>> run(const Engine& engine,
                                                             const std::vector<std::vector<std::int64_t>>& prompts) {
  Session session(engine, {.batch_size = std::ssize(prompts), .max_tokens = kMaxTokens, .details = {}});
  session.prefill(prompts);
  std::pair<std::vector<std::int64_t>, std::vector<float>> result;
  for (std::int64_t step = 0; step < kGraphSteps; ++step) {
    const StepResult now = session.decode();
    result.first.insert(result.first.end(), now.token_ids.begin(), now.token_ids.end());
    const std::vector<float> logits = session.last_logits();
    result.second.insert(result.second.end(), logits.begin(), logits.end());
  }
  return result;
}

const std::string kFixedPlaces = "causal,+kv-static,+workspace-forward,+vectorized-choice";

TEST(RecordedSteps, GiveTheTokensOfEagerOnesAcrossBucketsInAnyBatch) {
  for (const bool multi_query : {true, false}) {
    const auto model = small_model(small_config(multi_query));
    for (const GraphScope scope : {GraphScope::whole_step, GraphScope::around_attention}) {
      for (const std::int64_t batch : {1, 3, 4}) {
        for (const bool ragged : {false, true}) {
          const auto prompts = prompts_of(batch, ragged);
          const auto expected = run(engine_for("causal", model), prompts);
          for (const std::string& arm :
               {kFixedPlaces, std::string("causal,+kv-preallocated,+merged-kv,+workspace-forward")}) {
            int records = 0;
            const auto got =
                run(recorded_engine(arm, model, scope, {.most_rows = 8, .keys_multiple = 8}, &records), prompts);
            EXPECT_EQ(got.first, expected.first) << arm << " batch " << batch << (ragged ? " ragged" : "");
            EXPECT_LT(relative_difference(got.second, expected.second), testing::tolerance(ElementType::float32))
                << arm << " batch " << batch << (ragged ? " ragged" : "");
            EXPECT_GT(records, 0);
          }
        }
      }
    }
  }
}

/// Passes over guesses of none to three tokens of each row, most of them right, until no row has room for another; and
/// how many of them ran as a record.
struct Passes {
  std::vector<std::vector<std::int64_t>> said;
  std::vector<float> logits;  ///< Those behind each pass.
  std::int64_t passes = 0;
  std::int64_t launches = 0;

  Passes(const Engine& engine, const std::vector<std::vector<std::int64_t>>& prompts,
         const std::vector<std::int64_t>& known)
      : said(prompts.size()) {
    Session session(engine, {.batch_size = std::ssize(prompts), .max_tokens = kMaxTokens, .details = {}});
    session.prefill(prompts);
    const std::size_t rows = prompts.size();
    while (std::ranges::max(session.lengths()) + 4 <= kMaxTokens &&
           std::ranges::max(said, {}, &std::vector<std::int64_t>::size).size() + 4 < kGraphSteps) {
      std::vector<std::vector<std::int64_t>> guesses(rows);
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t guess = 0; guess < (row + static_cast<std::size_t>(passes)) % 4; ++guess) {
          const std::int64_t right = known[(said[row].size() + guess) * rows + row];
          guesses[row].push_back(guess == 2 && passes % 2 == 0 ? (right + 1) % small_config().vocabulary_size : right);
        }
      }
      StepCounters counting("cpu");
      const std::vector<RowRun> runs = session.verify(guesses);
      const Counters counted = counting.counters();
      launches += counted.contains("graph_launches") ? counted.at("graph_launches") : 0;
      ++passes;
      for (std::size_t row = 0; row < rows; ++row) {
        said[row].insert(said[row].end(), runs[row].token_ids.begin(), runs[row].token_ids.end());
      }
      const std::vector<float> last = session.last_logits();
      logits.insert(logits.end(), last.begin(), last.end());
    }
  }
};

TEST(RecordedSteps, GiveTheTokensOfEagerPassesOverGuesses) {
  const auto model = small_model(small_config());
  for (const std::int64_t batch : {1, 3}) {
    const auto prompts = prompts_of(batch, batch > 1);
    const Engine eager = engine_for(kFixedPlaces, model);
    const std::vector<std::int64_t> known = run(eager, prompts).first;
    const Passes expected(eager, prompts, known);
    EXPECT_GT(expected.passes, 4);
    EXPECT_EQ(expected.launches, 0);
    for (const GraphScope scope : {GraphScope::whole_step, GraphScope::around_attention}) {
      int records = 0;
      const Passes got(recorded_engine(kFixedPlaces, model, scope, {.most_rows = 8, .keys_multiple = 8}, &records),
                       prompts, known);
      EXPECT_EQ(got.said, expected.said) << "batch " << batch;
      EXPECT_LT(relative_difference(got.logits, expected.logits), testing::tolerance(ElementType::float32));
      EXPECT_EQ(got.launches, scope == GraphScope::whole_step ? got.passes : 0);
    }
  }
}

TEST(RecordedSteps, RunAPassWhosePaddingHasNoSlotWithoutARecord) {
  const auto model = small_model(small_config());
  constexpr std::int64_t kRoom = 8;
  int records = 0;
  std::vector<std::vector<std::int64_t>> said;
  for (const bool recorded : {false, true}) {
    const Engine engine = recorded ? recorded_engine(kFixedPlaces, model, GraphScope::whole_step, {}, &records)
                                   : engine_for(kFixedPlaces, model);
    Session session(engine, {.batch_size = 2, .max_tokens = kRoom, .details = {}});
    session.prefill(std::vector<std::vector<std::int64_t>>{{1, 2, 3, 4, 5, 6}, {1, 2}});
    StepCounters counting("cpu");
    const std::vector<RowRun> runs = session.verify(std::vector<std::vector<std::int64_t>>{{9}, {9, 9, 9}});
    EXPECT_FALSE(counting.counters().contains("graph_launches"));
    said.push_back(runs[0].token_ids);
    said.push_back(runs[1].token_ids);
  }
  EXPECT_EQ(said[2], said[0]);
  EXPECT_EQ(said[3], said[1]);
}

TEST(RecordedSteps, RunEveryVariantThatMayStandBesideThem) {
  const auto model = small_model(small_config());
  const auto prompts = prompts_of(3, true);
  const auto expected = run(engine_for("causal", model), prompts);
  int records = 0;
  const std::string others = ",+details-on-request,+flash-prefill,+last-token-lm-head,+merged-kv,+transposed-linear";
  const auto whole = run(recorded_engine(kFixedPlaces + others, model, GraphScope::whole_step, {}, &records), prompts);
  EXPECT_EQ(whole.first, expected.first);
  // Attention is outside: kernels that ask the host for lengths, and a cache that moves, may stand beside it.
  for (const std::string arm : {"causal,+workspace-forward,+kv-grow:tokens=3,+split-kv-decode,+fused-layer-norm",
                                "causal,+workspace-forward,+flash-decode,+padded-keys", "native"}) {
    const auto partial = run(recorded_engine(arm, model, GraphScope::around_attention, {}, &records), prompts);
    EXPECT_EQ(partial.first, expected.first) << arm;
  }
}

TEST(RecordedSteps, AreRecordedOnceABucketAndBeforeTheFirstStep) {
  const auto model = small_model(small_config());
  int records = 0;
  const Engine engine =
      recorded_engine(kFixedPlaces, model, GraphScope::whole_step, {.most_rows = 4, .keys_multiple = 8}, &records);
  Session session(engine, {.batch_size = 1, .max_tokens = kMaxTokens, .details = {}});
  session.prefill(prompts_of(1, false));
  EXPECT_EQ(records, 5) << "8, 16, 24, 32 and 40 keys";
  for (std::int64_t step = 0; step < kGraphSteps; ++step) {
    session.decode();
  }
  session.truncate(4);
  session.decode();
  EXPECT_EQ(records, 5);

  int parts = 0;
  run(recorded_engine(kFixedPlaces, model, GraphScope::around_attention, {}, &parts), prompts_of(1, false));
  EXPECT_EQ(parts, 3) << "one more than layers";
}

TEST(RecordedSteps, AreRecordedAgainWhenKeysAndValuesMoved) {
  // Refused on a command line; here it shows that the runner itself notices.
  const auto model = small_model(small_config());
  const Engine eager = engine_for("causal", model);
  int records = 0;
  const Engine moving = recorded_engine("causal,+kv-grow:tokens=4,+workspace-forward", model, GraphScope::whole_step,
                                        {.keys_multiple = 4}, &records);
  const SessionOptions options{.batch_size = 3, .max_tokens = kMaxTokens, .details = {}};
  Session expected(eager, options);
  Session session(moving, options);
  expected.prefill(prompts_of(3, false));
  session.prefill(prompts_of(3, false));
  const int prepared = records;
  EXPECT_EQ(session.decode().token_ids, expected.decode().token_ids);
  EXPECT_EQ(records, prepared);
  for (Session* one : {&session, &expected}) {
    one->truncate(1);  // gives back what it no longer needs
    one->force_tokens(std::vector<std::int64_t>{4, 5, 6});
  }
  EXPECT_EQ(session.decode().token_ids, expected.decode().token_ids);
  EXPECT_EQ(records, prepared + 1);
}

/// Serves requests of several lengths, and returns how often something was recorded up to the step in which the batch
/// was first full, and in all.
std::pair<int, int> records_of_a_batch(const std::string& rule) {
  int records = 0;
  const Engine engine = recorded_engine(kFixedPlaces + rule, small_model(small_config()), GraphScope::whole_step,
                                        {.most_rows = 8, .keys_multiple = 8}, &records);
  constexpr std::int64_t kRows = 4;
  ContinuousBatch batch(engine, {.max_rows = kRows});
  for (std::int64_t index = 0; index < 16; ++index) {
    const std::int64_t prompt = 1 + index % 5;  // With the longest completions, every third row comes to hold 30.
    batch.submit({.prompt = std::vector<std::int64_t>(static_cast<std::size_t>(prompt), 3),
                  .max_tokens = index % 3 == 0 ? 31 - prompt : 8 + prompt});
  }
  int when_full = 0;
  while (!batch.idle()) {
    batch.step();
    when_full = when_full == 0 && batch.counts().most_rows == kRows ? records : when_full;
  }
  return {when_full, records};
}

TEST(RecordedSteps, AreKeptByABatchOfOneShapeWhoeverJoinsAndLeaves) {
  const auto [first, all] = records_of_a_batch(",+slot-batch");
  EXPECT_GT(first, 0);
  EXPECT_EQ(all, first) << "rows take the places of others, and sessions that only bring them record nothing";
  const auto [before, after] = records_of_a_batch(",+concatenate-filter");
  EXPECT_GT(after, before) << "rows that join move all keys";
}

TEST(RecordedSteps, CountWhatEagerStepsCountAndTheirLaunchesAndPadding) {
  ModelConfig config = small_config();
  config.layers = 3;
  const auto model = small_model(config);
  const auto counters_of = [&](const Engine& engine) {
    Session session(engine, {.batch_size = 3, .max_tokens = kMaxTokens, .details = {}});
    session.fill_random(10, 1);
    session.force_tokens(std::vector<std::int64_t>{1, 2, 3});
    StepCounters counting("cpu");
    session.decode();
    session.decode();
    return counting.counters();
  };
  int records = 0;
  const auto value = [](const Counters& counters, const std::string& name) {
    const auto found = counters.find(name);
    return found == counters.end() ? 0 : found->second;
  };
  const Counters eager = counters_of(engine_for(kFixedPlaces, model));
  const Counters whole =
      counters_of(recorded_engine(kFixedPlaces, model, GraphScope::whole_step, {.keys_multiple = 8}, &records));
  const Counters partial =
      counters_of(recorded_engine(kFixedPlaces, model, GraphScope::around_attention, {}, &records));
  EXPECT_EQ(value(eager, "graph_launches"), 0);
  EXPECT_EQ(value(whole, "graph_launches"), 2);
  EXPECT_EQ(value(partial, "graph_launches"), 2 * (3 + 1));
  EXPECT_EQ(value(whole, "cache_writes"), value(eager, "cache_writes"));
  EXPECT_EQ(value(partial, "cache_writes"), value(eager, "cache_writes"));
  EXPECT_EQ(value(whole, "padding_keys"), 3 * ((16 - 11) + (16 - 12)));
  EXPECT_EQ(value(partial, "padding_keys"), 0);
  EXPECT_EQ(value(whole, "padding_tokens"), 2 * (4 - 3));
  EXPECT_EQ(value(whole, "lm_head_rows"), 2 * 4) << "the row of padding goes through the head too";
}

TEST(RecordedSteps, RefuseAnAttentionThatAsksTheHostForLengths) {
  const auto model = small_model(small_config());
  int records = 0;
  const Engine engine =
      recorded_engine(kFixedPlaces + ",+split-kv-decode", model, GraphScope::whole_step, {}, &records);
  Session session(engine, {.batch_size = 1, .max_tokens = kMaxTokens, .details = {}});
  EXPECT_THROW(session.prefill(prompts_of(1, false)), std::logic_error) << "on a CPU its kernel reads them there";
}

TEST(RecordedSteps, LeaveRoomForPaddingInTheCacheAndCountItsBytes) {
  const auto model = small_model(small_config());
  int records = 0;
  const Engine eager = engine_for(kFixedPlaces, model);
  const Engine recorded = recorded_engine(kFixedPlaces, model, GraphScope::whole_step, {}, &records);
  const SessionOptions options{.batch_size = 3, .max_tokens = kMaxTokens, .details = {}};
  EXPECT_EQ(Session(recorded, options).cache_bytes() * 3, Session(eager, options).cache_bytes() * 4);
  EXPECT_GT(recorded.step_bytes(3, 1, 10, 40), eager.step_bytes(3, 1, 10, 40));
  EXPECT_EQ(recorded.step_bytes(4, 1, 10, 40), eager.step_bytes(4, 1, 10, 40));
}

TEST(CudaGraphVariants, AreRefusedBesideWhatCannotBeRecordedNamingBoth) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"causal,+cuda-graph,+workspace-forward", "concatenated cache"},
      {"causal,+cuda-graph,+workspace-forward,+kv-grow", "kv-grow"},
      {"causal,+cuda-graph,+kv-static", "the reference's forward"},
      {"causal,+cuda-graph,+kv-static,+lean-forward", "lean-forward"},
      {"causal,+cuda-graph,+kv-static,+workspace-forward,+flash-decode", "flash-decode"},
      {"causal,+cuda-graph,+kv-static,+workspace-forward,+cudnn-decode", "cudnn-decode"},
      {"causal,+cuda-graph,+kv-static,+workspace-forward,+efficient-decode", "efficient-decode"},
      {"causal,+cuda-graph,+kv-static,+workspace-forward,+padded-keys", "padded-keys"},
      {"causal,+cuda-graph-partial", "the reference's forward"},
      {"causal,+cuda-graph,+cuda-graph-partial,+kv-static,+workspace-forward", "step_runner"},
  };
  for (const auto& [arm, other] : refused) {
    try {
      parse_arm(arm);
      ADD_FAILURE() << arm << " was accepted";
    } catch (const std::invalid_argument& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("cuda-graph"), std::string::npos) << said;
      EXPECT_NE(said.find(other), std::string::npos) << said;
    }
  }
  EXPECT_NO_THROW(parse_arm("causal,+cuda-graph,+kv-preallocated,+workspace-forward,+split-kv-decode"));
  EXPECT_NO_THROW(parse_arm("causal,+cuda-graph-partial,+workspace-forward,+flash-decode"));
}

TEST(CudaGraphVariants, NeedACudaDevice) {
  const ModelConfig config = small_config();
  for (const std::string arm :
       {"causal,+cuda-graph,+kv-static,+workspace-forward", "causal,+cuda-graph-partial,+workspace-forward"}) {
    EXPECT_NE(unsupported_reason(parse_arm(arm), {.config = config, .dtype = ElementType::float16, .device = "cpu"})
                  .find("CUDA device"),
              std::string::npos);
    EXPECT_EQ(unsupported_reason(parse_arm(arm), {.config = config, .dtype = ElementType::float16, .device = "cuda:0"}),
              "");
  }
  EXPECT_THROW(make_cuda_graph_recorder("cpu"), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
