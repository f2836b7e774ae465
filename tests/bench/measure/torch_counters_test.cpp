// Counts are exact, by stage, and catch the one operation that was not there before.
#include "bench/measure/torch_counters.h"

#include <gtest/gtest.h>

#include "engine/generation.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

TEST(StepCounters, CountsOperatorsAllocationsAndAmountsByStage) {
  const c10::InferenceMode inference;
  const at::Tensor a = at::ones({4, 8});
  StepCounters counting("cpu");
  {
    const Range mlp(Stage::mlp);
    const at::Tensor b = a + a;
    {
      const Range norm(Stage::norm);
      const at::Tensor c = at::cat({a, b});
    }
    const at::Tensor view = b.narrow(0, 0, 1);
  }
  const at::Tensor outside = a.clone();
  count_amount(Amount::lm_head_rows, 5);
  const Counters counters = counting.counters();
  EXPECT_EQ(counters.at("op.aten::add"), 1);
  EXPECT_EQ(counters.at("op.aten::cat"), 1);
  EXPECT_EQ(counters.at("mlp.operators"), 2) << "add and narrow; norm counts for itself";
  EXPECT_EQ(counters.at("mlp.allocations"), 1);
  EXPECT_EQ(counters.at("mlp.allocated_bytes"), 4 * 8 * 4);
  EXPECT_EQ(counters.at("norm.allocated_bytes"), 2 * 4 * 8 * 4);
  EXPECT_EQ(counters.at("other.allocations"), 1);
  EXPECT_EQ(counters.at("allocations"), 3);
  EXPECT_EQ(counters.at("lm_head_rows"), 5);
  EXPECT_FALSE(counters.contains("copied_cache_bytes"));
}

TEST(StepCounters, ForgetsWithRestartAndListensNoLongerThanItLives) {
  const c10::InferenceMode inference;
  {
    StepCounters counting("cpu");
    const at::Tensor a = at::ones({1024});
    counting.restart();
    EXPECT_TRUE(counting.counters().empty());
    EXPECT_EQ(counting.peak_bytes(), 4096) << "the peak goes on";
  }
  EXPECT_EQ(range_listener, nullptr);
  const at::Tensor b = at::ones({4}) + 1;  // nobody listens, and nothing happens
  EXPECT_EQ(b[0].item<float>(), 2);
}

/// The counters of one decode step of the reference on a small model, with something done in between.
template <typename Extra>
Counters count_a_step(Extra&& extra) {
  const auto model = testing::small_model(testing::small_config());
  const Engine engine = testing::engine_for("causal", model);
  Session session(engine, {.batch_size = 2, .max_tokens = 12, .details = {}});
  const std::vector<std::vector<std::int64_t>> prompts{{1, 2, 3}, {4, 5, 6}};
  session.prefill(prompts);
  StepCounters counting("cpu");
  session.decode();
  extra();
  return counting.counters();
}

TEST(StepCounters, AreTheSameEachTimeAndMoveWithOneAllocationOrOneConcatenation) {
  const Counters once = count_a_step([] {});
  EXPECT_EQ(once, count_a_step([] {}));
  EXPECT_EQ(once.at("lm_head_rows"), 2);
  EXPECT_GT(once.at("attention.operators"), 0);
  EXPECT_GT(once.at("copied_cache_bytes"), 0);

  const Counters allocated = count_a_step([] { const at::Tensor extra = at::empty({3}); });
  EXPECT_EQ(allocated.at("allocations"), once.at("allocations") + 1);
  EXPECT_EQ(allocated.at("other.allocations"),
            once.contains("other.allocations") ? once.at("other.allocations") + 1 : 1);

  const at::Tensor piece = at::ones({2});
  const Counters concatenated = count_a_step([&] { const at::Tensor extra = at::cat({piece, piece}); });
  EXPECT_EQ(concatenated.at("op.aten::cat"), once.at("op.aten::cat") + 1);
}

}  // namespace
}  // namespace decodelab
