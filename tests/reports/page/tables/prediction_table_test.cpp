// Predicted completions: sums of what was measured, an interval over launches, and refusals instead of guesses.
#include "reports/page/tables/prediction_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reports/statistics/prediction.h"
#include "tests/reports/contains.h"
#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::contains;
using testing::message_of;
using testing::SampleOptions;

constexpr std::int64_t kSteps = 16;

/// A run whose steps take a known time: prefill 1000 + 10 * length, decode 100 + keys, in us, times 1.1 in launch 1.
RunData known_run(std::vector<Phase> phases = {Phase::prefill, Phase::decode}) {
  SampleOptions options;
  options.phases = std::move(phases);
  options.batches = {1};
  options.lengths = {64, 128, 256};
  options.arms = {{"causal"}, {kRooflineRead}};
  options.launches = 2;
  options.steps = kSteps;
  options.with_failures = false;
  RunData data = testing::sample_run(options);
  data.run.plan_json = R"({"max_tokens": 17})";
  for (BlockRecord& block : data.blocks) {
    const CellRecord& cell = data.cells.at(static_cast<std::size_t>(block.cell_id - 1));
    const std::int64_t scale = block.launch == 1 ? 1100 : 1000;
    for (VisitRecord& visit : block.visits) {
      for (std::size_t step = 0; step < visit.samples_ns.size(); ++step) {
        const std::int64_t keys = cell.length + static_cast<std::int64_t>(step);
        const std::int64_t us = cell.phase == Phase::prefill  ? 1000 + 10 * cell.length
                                : cell.phase == Phase::decode ? 100 + keys
                                                              : 2 * (1000 + 10 * cell.length);
        visit.samples_ns[step] = us * scale;
      }
    }
  }
  return data;
}

Prediction predicted(const RunData& data, const CompletionRequest& request) {
  const auto predictions = predict_completion(summarize(data), request);
  EXPECT_EQ(predictions.size(), 1U) << "a roofline completes nothing";
  return predictions.at(0);
}

TEST(Prediction, AddsThePrefillAndAStepForEveryFurtherToken) {
  const Prediction prediction = predicted(known_run(), {.batch = 1, .prompt_tokens = 64, .new_tokens = 1});
  EXPECT_NEAR(*prediction.prefill_ns, 1640e3 * 1.05, 1) << "the mean over both launches";
  EXPECT_EQ(*prediction.decode_ns, 0);
  // 16 steps, at 64 ... 79 keys: the first visit measured exactly these.
  const Prediction more = predicted(known_run(), {.batch = 1, .prompt_tokens = 64, .new_tokens = 17});
  EXPECT_NEAR(*more.decode_ns, (16 * 100 + 16 * 71.5) * 1e3 * 1.05, 16e3 * 8)
      << "the ends of a visit count as its mean";
  EXPECT_NEAR(*more.total_ns, *more.prefill_ns + *more.decode_ns, 1e-3);
  ASSERT_TRUE(more.interval.has_value());
  EXPECT_LT(more.interval->low, *more.total_ns);
  EXPECT_GT(more.interval->high, *more.total_ns);
}

TEST(Prediction, InterpolatesBetweenMeasuredLengthsAndSaysSo) {
  const Prediction between = predicted(known_run(), {.batch = 1, .prompt_tokens = 96, .new_tokens = 2});
  EXPECT_TRUE(between.interpolated);
  EXPECT_NEAR(*between.prefill_ns, (1000 + 10 * 96) * 1e3 * 1.05, 1);
  EXPECT_NEAR(*between.decode_ns, (100 + 96) * 1e3 * 1.05, 1);
  EXPECT_FALSE(predicted(known_run(), {.batch = 1, .prompt_tokens = 128, .new_tokens = 17}).interpolated);
}

TEST(Prediction, RefusesWhatLiesBeyondTheMeasuredLengthsOrBatches) {
  const RunData data = known_run();
  const auto refusal = [&](std::int64_t batch, std::int64_t prompt, std::int64_t tokens) {
    const Prediction prediction = predicted(data, {batch, prompt, tokens});
    EXPECT_FALSE(prediction.total_ns.has_value());
    return prediction.refusal;
  };
  EXPECT_TRUE(
      contains(refusal(1, 32, 2), {"prefill was measured at lengths 64 to 256", "32", "nothing is extrapolated"}));
  EXPECT_TRUE(contains(refusal(1, 256, 18), {"decode was measured at lengths 64 to 271", "256 to 272"}));
  EXPECT_TRUE(contains(refusal(2, 64, 2), {"no prefill was measured at batch 2"}));
  EXPECT_EQ(predicted(data, {1, 256, 17}).refusal, "") << "its last step finds 271 keys";
  EXPECT_TRUE(contains(message_of([&] { predict_completion(summarize(data), {1, 64, 0}); }),
                       {"0 new tokens: expected 1 or more"}));
}

TEST(Prediction, StandsBesideWhatWasMeasured) {
  const RunData data = known_run({Phase::prefill, Phase::decode, Phase::generate});
  const Prediction prediction = predicted(data, {.batch = 1, .prompt_tokens = 64, .new_tokens = 17});
  ASSERT_TRUE(prediction.measured_ns.has_value());
  EXPECT_NEAR(*prediction.measured_ns, 2 * 1640e3 * 1.05, 1);
  EXPECT_EQ(predicted(data, {1, 64, 16}).measured_ns, std::nullopt) << "another completion was measured";
  const Table table = prediction_table(summarize(data));
  ASSERT_EQ(table.rows.size(), 3U) << "one for each completion that was measured";
  EXPECT_EQ(table.rows[0].fields[0], "b1 pp64 + 17 tokens");
  EXPECT_EQ(table.rows[0].cell_id, prediction.measured_cell_id);
  EXPECT_EQ(table.rows[0].fields.back(), fmt::format("{:.3f}", *prediction.measured_ns / *prediction.total_ns));
  EXPECT_TRUE(contains(to_text(table), {"Measured: phase generate of the same run."}));
}

TEST(Prediction, OfARunWithoutCompletionsIsOneThatItsCurvesReach) {
  const auto requests = completions_of(summarize(known_run()), 128);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].prompt_tokens, 64);
  EXPECT_EQ(requests[0].new_tokens, 128);
  EXPECT_EQ(completions_of(summarize(known_run()), 1'000'000).at(0).new_tokens, 271 - 64 + 2);
  const Table table = prediction_table(summarize(known_run()));
  EXPECT_TRUE(contains(to_text(table), {"b1 pp64 + 128 tokens", "measured no such completion"}));
  EXPECT_TRUE(prediction_table(summarize(known_run({Phase::decode}))).rows.empty());
  EXPECT_TRUE(completions_of(RunSummary{}).empty());
}

TEST(Prediction, IsListedInTheNotesWhereItIsRefused) {
  const RunSummary summary = summarize(known_run());
  auto predictions = predict_completion(summary, {1, 64, 17});
  predictions.push_back(predict_completion(summary, {9, 64, 17}).at(0));
  const Table table = prediction_table(predictions);
  EXPECT_EQ(table.rows.size(), 1U);
  EXPECT_TRUE(contains(to_text(table), {"Not predicted: b9 pp64 + 17 tokens (causal): no prefill", "batch 9"}));
}

}  // namespace
}  // namespace decodelab
