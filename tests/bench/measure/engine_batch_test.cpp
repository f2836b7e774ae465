// What a worker of our own engine does in cells of phase batching, and with several samples of a prompt.
#include "bench/measure/engine_batch.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::small_config;
using testing::small_model;

CellRecord batching_cell(const std::string& scope) {
  return {.phase = Phase::batching,
          .batch = 3,
          .length = 8,
          .dtype = "fp32",
          .device = "cpu",
          .threads = 1,
          .scope = scope,
          .steps = 2};
}

std::unique_ptr<Worker> worker_of(const std::string& name) {
  const Arm arm = parse_arm(name);
  return make_engine_worker(
      std::make_shared<const Engine>(small_model(small_config()), bind_arm(arm, reference_plan())), arm,
      {.max_tokens = 5});
}

BatchWork small_work(const CellRecord& cell) {
  return batch_work({.max_tokens = 5}, cell, small_config().vocabulary_size);
}

TEST(Serve, AnswersEveryRequestAndTimesItsTokens) {
  const CellRecord cell = batching_cell("served");
  const BatchWork work = small_work(cell);
  const Engine engine = engine_for("causal,+slot-batch", small_model(small_config()));
  const ServedRequests served = serve(engine, work, {.max_rows = 3, .max_tokens = 5});
  ASSERT_EQ(served.tokens.size(), 12U);
  for (std::size_t request = 0; request < served.tokens.size(); ++request) {
    EXPECT_EQ(std::ssize(served.tokens[request]), work.planned[request].new_tokens);
    const RequestTimes& times = served.times[request];
    EXPECT_GT(times.first_ns, 0);
    EXPECT_EQ(times.tokens, std::ssize(served.tokens[request]));
    EXPECT_EQ(times.later_ns > 0, times.tokens > 1);
  }
  EXPECT_LE(served.times.back().first_ns, served.wall_ns);
  EXPECT_GT(served.times.back().first_ns, served.times.front().first_ns) << "the last waits for a row";
  EXPECT_EQ(served.counts.placed_rows, 9);
}

TEST(Serve, LetsRequestsComeAtTheirRate) {
  const CellRecord cell = batching_cell("served-at-200");
  const BatchWork work = small_work(cell);
  const Engine engine = engine_for("native", small_model(small_config()));
  const ServedRequests served = serve(engine, work, {.max_rows = 3, .max_tokens = 5, .request_rate = 200});
  const double last_arrival_ns = 1e9 * work.planned.back().arrival / 200;
  EXPECT_GE(static_cast<double>(served.wall_ns), last_arrival_ns);
  EXPECT_TRUE(std::ranges::all_of(served.times, [](const RequestTimes& times) { return times.first_ns > 0; }));
}

TEST(Serve, RepeatsExactlyWhereArrivalsAreCountedInSteps) {
  const BatchWork work = small_work(batching_cell("served-at-1"));
  const Engine engine = engine_for("causal,+concatenate-filter", small_model(small_config()));
  const ServeOptions options{.max_rows = 3, .max_tokens = 5, .request_rate = 1, .clock = ArrivalClock::decode_steps};
  const ServedRequests one = serve(engine, work, options);
  const ServedRequests two = serve(engine, work, options);
  EXPECT_EQ(one.tokens, two.tokens);
  EXPECT_EQ(one.counts.decode_steps, two.counts.decode_steps);
  EXPECT_EQ(one.counts.joined_rows, two.counts.joined_rows);
  EXPECT_GT(one.counts.joined_rows, 0);
}

TEST(EngineWorker, ChoosesTheSameTokensUnderEveryRuleOfBatching) {
  const CellRecord cell = batching_cell("first-token-at-3");
  const OutputTrace expected = worker_of("causal")->outputs(cell, 1 << 20, nullptr);
  EXPECT_EQ(expected.batch, 12);
  EXPECT_EQ(std::ssize(expected.tokens), 8) << "the longest completion has twice 5 tokens less 2";
  EXPECT_EQ(std::ranges::count(expected.tokens.front(), -1), 0);
  EXPECT_GT(std::ranges::count(expected.tokens.back(), -1), 0) << "a shorter request has no token there";
  for (const char* arm : {"causal,+concatenate-filter", "causal,+padded-batch", "native", "bigcode,+slot-batch"}) {
    EXPECT_TRUE(compare_free_running(expected, worker_of(arm)->outputs(cell, 1 << 20, nullptr)).correct) << arm;
  }
}

TEST(EngineWorker, TimesWhatTheScopeOfBatchingSays) {
  const auto worker = worker_of("native");
  const VisitTimes served = worker->visit(batching_cell("served"));
  const VisitTimes between = worker->visit(batching_cell("between-tokens"));
  ASSERT_EQ(served.samples_ns.size(), 2U);
  ASSERT_EQ(between.samples_ns.size(), 2U);
  EXPECT_LT(between.samples_ns.front(), served.samples_ns.front());
  EXPECT_GE(between.wall_ns, between.samples_ns.front());
}

TEST(EngineWorker, GivesEachSampleOfAPromptARow) {
  CellRecord cell{.phase = Phase::prefill,
                  .batch = 2,
                  .length = 9,
                  .dtype = "fp32",
                  .device = "cpu",
                  .threads = 1,
                  .scope = "step-samples-3"};
  const OutputTrace each = worker_of("causal")->outputs(cell, 3, nullptr);
  const OutputTrace forked = worker_of("causal,+copied-fork")->outputs(cell, 3, nullptr);
  EXPECT_EQ(each.batch, 6);
  EXPECT_EQ(each.tokens.front()[0], each.tokens.front()[2]) << "greedy samples are alike";
  EXPECT_TRUE(compare_free_running(each, forked).correct);
  cell.phase = Phase::generate;
  cell.scope = "generate-samples-3";
  EXPECT_TRUE(compare_free_running(worker_of("native")->outputs(cell, 3, nullptr), each).correct);
}

TEST(EngineWorker, RefusesRandomKeysWhereNoneAreKept) {
  const CellRecord cell{
      .phase = Phase::decode, .batch = 1, .length = 9, .dtype = "fp32", .device = "cpu", .threads = 1};
  try {
    worker_of("causal,+no-cache")->outputs(cell, 1, nullptr);
    FAIL();
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, RowStatus::unsupported);
    EXPECT_NE(std::string(error.what()).find("--fill generated"), std::string::npos);
  }
}

}  // namespace
}  // namespace decodelab
