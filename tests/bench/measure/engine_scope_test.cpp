// What a worker of our own engine does in the steps of each scope.
#include <gtest/gtest.h>

#include "bench/measure/engine_worker.h"
#include "profiles/range.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::small_config;
using testing::small_model;

constexpr std::int64_t kSteps = 6;

CellRecord decode_cell(const std::string& scope) {
  return {.phase = Phase::decode,
          .batch = 2,
          .length = 10,
          .dtype = "fp32",
          .device = "cpu",
          .threads = 1,
          .scope = scope,
          .steps = kSteps};
}

std::unique_ptr<Worker> worker(const std::string& name) {
  const Arm arm = parse_arm(name);
  return make_engine_worker(
      std::make_shared<const Engine>(small_model(small_config()), bind_arm(arm, reference_plan())), arm, CellInput{});
}

/// What the reference's cache copies: all that it holds, at every step, a number for each tensor.
class CopiedBytes final : public RangeListener {
 public:
  CopiedBytes() { range_listener = this; }
  ~CopiedBytes() override { range_listener = nullptr; }
  CopiedBytes(const CopiedBytes&) = delete;
  CopiedBytes& operator=(const CopiedBytes&) = delete;
  void enter(Stage) override {}
  void leave() override {}
  void add(Amount amount, std::int64_t value) override {
    if (amount == Amount::copied_cache_bytes) {
      copied.push_back(value);
    }
  }
  std::vector<std::int64_t> copied;
};

std::vector<std::int64_t> copied_in_timed_steps(const std::string& scope) {
  const std::unique_ptr<Worker> reference = worker("causal");
  CopiedBytes copies;
  EXPECT_EQ(reference->visit(decode_cell(scope)).samples_ns.size(), static_cast<std::size_t>(kSteps));
  // At most two tensors a layer: these are the last steps of the visit, three at least.
  const std::int64_t last = kSteps * small_config().layers;
  EXPECT_GE(std::ssize(copies.copied), last);
  return {copies.copied.end() - last, copies.copied.end()};
}

TEST(StepsOfACell, FollowOneAnotherOrAllStartFromItsLength) {
  const std::vector<std::int64_t> following = copied_in_timed_steps("step");
  const std::vector<std::int64_t> at_length = copied_in_timed_steps("step-at-length");
  ASSERT_FALSE(following.empty());
  EXPECT_GT(following.back(), following.front());
  EXPECT_EQ(at_length.back(), at_length.front());
}

TEST(StepsOfACell, OfAContinuationMayBeTimedRoundByRound) {
  constexpr std::int64_t kTokens = 16;  // of CellInput
  CellRecord cell = decode_cell("continue");
  cell.phase = Phase::continuation;
  cell.steps = 2;
  for (const std::string arm : {"causal", "causal,+ngram-lookup", "native,+oracle-draft:percent=50"}) {
    const std::unique_ptr<Worker> timed = worker(arm);
    ASSERT_TRUE(timed->times_rounds(cell));
    const Probe probe = timed->probe(cell);
    const auto counted = probe.counters.find("rounds");
    const std::int64_t rounds = counted == probe.counters.end() ? kTokens : counted->second;
    const std::unique_ptr<OpenVisit> visit = timed->open_visit(cell);
    double done = 0;
    for (std::int64_t round = 0; round < cell.steps * rounds; ++round) {
      EXPECT_LT(done, 1) << arm;
      EXPECT_EQ(std::ssize(visit->times().samples_ns), round / rounds) << arm;
      const double now = visit->time_round(cell.steps);
      EXPECT_GT(now, done) << arm;
      done = now;
    }
    EXPECT_EQ(done, 1) << arm;
    EXPECT_EQ(std::ssize(visit->times().samples_ns), cell.steps) << arm;
    EXPECT_NEAR(static_cast<double>(visit->times().wall_ns),
                static_cast<double>(kTokens * (visit->times().samples_ns[0] + visit->times().samples_ns[1])),
                2 * kTokens)
        << arm;
  }
  EXPECT_FALSE(worker("causal")->times_rounds(decode_cell("step")));
}

TEST(StepsOfACell, ChooseNothingInTheForwardScope) {
  const std::string arm = "bigcode,+late-read-back";
  const Probe step = worker(arm)->probe(decode_cell("step"));
  EXPECT_EQ(step.engaged, std::optional(true)) << step.missing;
  EXPECT_EQ(step.counters.at("late_reads"), step.counters.at("counted_steps") - 1);
  const Probe forward = worker(arm)->probe(decode_cell("forward"));
  EXPECT_EQ(forward.engaged, std::optional(true)) << forward.missing;
  EXPECT_FALSE(forward.counters.contains("choice.operators"));
  EXPECT_FALSE(forward.counters.contains("late_reads"));
  EXPECT_EQ(forward.counters.at("lm_head_rows"), step.counters.at("lm_head_rows"));
}

}  // namespace
}  // namespace decodelab
