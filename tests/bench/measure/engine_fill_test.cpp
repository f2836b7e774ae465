// A cell is filled once; what follows restores it.
#include <gtest/gtest.h>

#include "bench/measure/engine_cell.h"
#include "bench/measure/engine_worker.h"
#include "profiles/range.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::small_config;
using testing::small_model;

/// Counts steps of any kind by what each begins with.
class Embeddings final : public RangeListener {
 public:
  Embeddings() { range_listener = this; }
  ~Embeddings() override { range_listener = nullptr; }
  Embeddings(const Embeddings&) = delete;
  Embeddings& operator=(const Embeddings&) = delete;
  void enter(Stage stage) override { count += stage == Stage::embed ? 1 : 0; }
  void leave() override {}
  void add(Amount, std::int64_t) override {}
  int count = 0;
};

CellRecord cell(const std::string& fill, std::int64_t batch = 2) {
  return {.phase = Phase::decode,
          .batch = batch,
          .length = 10,
          .dtype = "fp32",
          .device = "cpu",
          .threads = 1,
          .fill = fill,
          .steps = 8};
}

std::unique_ptr<Worker> worker(const CellInput& input = {}, const std::string& label = "causal",
                               std::int64_t positions = 64) {
  const Arm arm = parse_arm(label);
  ModelConfig config = small_config();
  config.positions = positions;
  return make_engine_worker(std::make_shared<const Engine>(small_model(config), bind_arm(arm, reference_plan())), arm,
                            input);
}

int steps_of_outputs(Worker& of, const CellRecord& in) {
  const Embeddings steps;
  of.outputs(in, 4, nullptr);
  return steps.count;
}

TEST(FillingACell, IsAPrefillOnceAndACopyLater) {
  const std::unique_ptr<Worker> arm = worker();
  const OutputTrace first = arm->outputs(cell("generated"), 4, nullptr);
  const std::int64_t filling_ns = arm->side_work().filling_ns;
  EXPECT_GT(filling_ns, 0);
  EXPECT_EQ(steps_of_outputs(*arm, cell("generated")), 4) << "no prefill";
  EXPECT_EQ(steps_of_outputs(*arm, cell("generated", 3)), 5) << "another cell has its own";
  EXPECT_GT(arm->side_work().filling_ns, filling_ns);
  arm->visit(cell("generated"));
  const OutputTrace again = arm->outputs(cell("generated"), 4, nullptr);
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.logits, first.logits);
  EXPECT_EQ(again.first, first.first);
}

TEST(FillingACell, IsNoPrefillWhereAnEarlierProcessDidTheSame) {
  const testing::TemporaryFolder folder;
  CellInput input;
  input.kept = std::make_shared<const KeptBytes>(folder.path());
  input.kept_key = "this build\n";
  const OutputTrace first = worker(input)->outputs(cell("generated"), 4, nullptr);
  const std::unique_ptr<Worker> later = worker(input);
  EXPECT_EQ(steps_of_outputs(*later, cell("generated")), 4);
  const OutputTrace again = later->outputs(cell("generated"), 4, nullptr);
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.logits, first.logits);
  input.kept_key = "another build\n";
  EXPECT_EQ(steps_of_outputs(*worker(input), cell("generated")), 5);
  EXPECT_EQ(steps_of_outputs(*worker(input), cell("random")), 4) << "random numbers are made, not kept";
}

TEST(FillingACell, AndChoosingGivesTheTokensOfTheOutputsWithoutLogits) {
  const std::unique_ptr<Worker> arm = worker();
  const OutputTrace outputs = arm->outputs(cell("generated"), 4, nullptr);
  const OutputTrace choices = arm->choices(cell("generated"), 2, nullptr);
  EXPECT_TRUE(choices.logits.empty());
  EXPECT_EQ(choices.tokens, (std::vector<std::vector<std::int64_t>>{outputs.tokens[0], outputs.tokens[1]}));
}

TEST(FillingACell, WithRandomNumbersGivesTheSameEachTime) {
  const std::unique_ptr<Worker> arm = worker();
  const OutputTrace first = arm->outputs(cell("random"), 4, nullptr);
  EXPECT_EQ(arm->outputs(cell("random"), 4, nullptr).logits, first.logits);
  EXPECT_EQ(worker()->outputs(cell("random"), 4, nullptr).logits, first.logits);
}

TEST(FillingACell, IsAPrefillEachTimeWhereASamplersStateBelongsToIt) {
  CellInput input;
  input.sampling.repetition_penalty = 1.2;
  const std::unique_ptr<Worker> arm = worker(input);
  arm->outputs(cell("generated"), 4, nullptr);  // greedy, and kept
  const Embeddings steps;
  arm->visit(cell("generated"));
  EXPECT_GE(steps.count, 8 + 2 + 1) << "the warm-up and the timed steps each begin with a prefill";
}

TEST(FillingACell, IsACopyOfWhatIsHeldHoweverMuchMoreTheCacheHasRoomFor) {
  constexpr std::int64_t kRows = 64;
  const std::int64_t bytes_of_a_position = kRows * 2 * small_config().kv_width() * 4;  // in 2 layers
  const std::int64_t positions = CacheSnapshots::kMostBytes / bytes_of_a_position + 1;
  const std::unique_ptr<Worker> arm = worker({}, "causal,+kv-static", positions);
  arm->outputs(cell("generated", kRows), 4, nullptr);
  EXPECT_EQ(steps_of_outputs(*arm, cell("generated", kRows)), 4) << "no prefill";
}

TEST(FillingACell, AnewDoesNotHideTheCacheFromThePeak) {
  constexpr std::int64_t kPositions = 4096;
  const std::int64_t cache_bytes = kPositions * 2 * 2 * small_config().kv_width() * 4;  // of 2 rows in 2 layers
  const auto peak = [](const CellInput& input) {
    return worker(input, "causal,+kv-static", kPositions)->probe(cell("generated")).peak_bytes.value();
  };
  CellInput penalized;
  penalized.sampling.repetition_penalty = 1.2;
  EXPECT_GE(peak({}), cache_bytes) << "its keys are copied";
  EXPECT_GE(peak(penalized), cache_bytes) << "it is prefilled for each pass";
}

TEST(CacheSnapshots, KeepTheLastUsedWithinTheirRoom) {
  CacheSnapshots snapshots;
  EXPECT_EQ(snapshots.find(cell("random")), nullptr);
  const Engine engine(small_model(small_config()), reference_plan());
  const auto filled = [&] {
    Session session(engine, {.batch_size = 2, .max_tokens = 20, .details = {}});
    session.fill_random(10, 1);
    return session.filled();
  };
  snapshots.keep(cell("random"), {.cache = filled(), .first_tokens = {1, 2}});
  snapshots.keep(cell("generated"), {.cache = filled(), .first_tokens = {3, 4}});
  ASSERT_NE(snapshots.find(cell("random")), nullptr);
  EXPECT_EQ(snapshots.find(cell("random"))->first_tokens, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(snapshots.find(cell("generated"))->first_tokens, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(snapshots.find(cell("random", 3)), nullptr);
}

}  // namespace
}  // namespace decodelab
