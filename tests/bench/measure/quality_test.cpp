// What is said of an arm's predictions, against sums worked out by hand; and what a launch does with it.
#include "bench/measure/quality.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/bench/measure/launch_runner_fixture.h"

namespace decodelab {
namespace {

using testing::LaunchRunnerTest;

std::vector<std::int64_t> counted_ids(std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// Two rows of one step over a vocabulary of two, whose logits are the given probabilities.
OutputTrace trace_of(double first_row, double second_row) {
  const auto logit = [](double probability) { return static_cast<float>(std::log(probability)); };
  return {.tokens = {{0, 1}},
          .logits = {{logit(first_row), logit(1 - first_row), logit(second_row), logit(1 - second_row)}},
          .batch = 2,
          .vocabulary = 2};
}

TEST(QualityText, IsCutIntoRowsThatPredictNeighbouringPieces) {
  EXPECT_TRUE(quality_batches(counted_ids(kQualityContext + kQualitySteps - 1)).empty());
  const std::vector<OutputTrace> batches = quality_batches(counted_ids(kQualityContext + 10 * kQualitySteps + 5));
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].batch, kQualityRows);
  EXPECT_EQ(batches[1].batch, 2);
  std::vector<bool> predicted(static_cast<std::size_t>(11 * kQualitySteps));
  for (const OutputTrace& batch : batches) {
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch.batch); ++row) {
      EXPECT_EQ(batch.prompts[row].size(), static_cast<std::size_t>(kQualityContext));
      EXPECT_EQ(batch.tokens.front()[row], batch.prompts[row].back() + 1) << "the next token of the text";
      for (const std::vector<std::int64_t>& step : batch.tokens) {
        predicted[static_cast<std::size_t>(step[row])] = true;
      }
    }
  }
  EXPECT_EQ(std::ranges::count(predicted, true), 10 * kQualitySteps) << "each token once";
}

TEST(QualitySums, AreThoseOfTheDefinitions) {
  OutputTrace fed = trace_of(0.5, 0.5);
  QualitySums sums;
  sums.add(fed, trace_of(0.5, 0.2), trace_of(0.25, 0.4));
  const QualityRecord got = sums.record(7);
  EXPECT_EQ(got.arm_id, 7);
  EXPECT_EQ(got.tokens, 2);
  // The text's tokens are 0 and 1: probabilities 0.25 and 0.6 beside 0.5 and 0.8.
  EXPECT_NEAR(got.log_perplexity, -(std::log(0.25) + std::log(0.6)) / 2, 1e-6);
  EXPECT_NEAR(got.log_ratio, (std::log(2) + std::log(0.8 / 0.6)) / 2, 1e-6);
  const double first = 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75);
  const double second = 0.2 * std::log(0.2 / 0.4) + 0.8 * std::log(0.8 / 0.6);
  EXPECT_NEAR(got.kl_divergence, (first + second) / 2, 1e-6);
  EXPECT_NEAR(got.kl_divergence_error, std::abs(first - second) / 2, 1e-6) << "two values: half their distance";
  EXPECT_NEAR(got.kl_divergence_999, std::min(first, second), 1e-6);
  EXPECT_EQ(got.top_1_agreement, 0.5)
      << "in the first row both of the reference's are most probable, and the arm's is the other";
  EXPECT_NEAR(got.rms_probability, std::sqrt((0.25 * 0.25 + 0.2 * 0.2) / 2), 1e-6);
}

TEST(QualitySums, OfTheReferenceItselfAreZero) {
  OutputTrace fed = trace_of(0.5, 0.5);
  QualitySums sums;
  sums.add(fed, trace_of(0.3, 0.9), trace_of(0.3, 0.9));
  const QualityRecord got = sums.record(1);
  EXPECT_EQ(got.kl_divergence, 0);
  EXPECT_EQ(got.log_ratio, 0);
  EXPECT_EQ(got.top_1_agreement, 1);
  EXPECT_EQ(got.rms_probability, 0);
}

TEST(QualitySums, RefuseLogitsThatAreMissingOrNoNumbers) {
  OutputTrace fed = trace_of(0.5, 0.5);
  QualitySums sums;
  OutputTrace none = trace_of(0.5, 0.5);
  none.logits.clear();
  EXPECT_THROW(sums.add(fed, trace_of(0.5, 0.5), none), std::invalid_argument);
  OutputTrace short_one = trace_of(0.5, 0.5);
  short_one.logits.front().pop_back();
  EXPECT_THROW(sums.add(fed, trace_of(0.5, 0.5), short_one), std::invalid_argument);
  OutputTrace infinite = trace_of(0.5, 0.5);
  infinite.logits.front()[1] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(sums.add(fed, trace_of(0.5, 0.5), infinite), std::invalid_argument);
  EXPECT_THROW(sums.record(1), std::invalid_argument);
}

TEST(QualityLimits, AreReadAndWrittenAndHoldWhereTheLossIsSure) {
  const QualityLimit limit = parse_quality_limit("kl=0.01,perplexity=1.02,top-1=0.9");
  EXPECT_EQ(parse_quality_limit(to_string(limit)), limit);
  EXPECT_EQ(parse_quality_limit(""), QualityLimit());
  for (const char* wrong : {"kl", "kl=", "kl=x", "kl=-1", "speed=2", "kl=1;top-1=1"}) {
    EXPECT_THROW(parse_quality_limit(wrong), std::invalid_argument) << wrong;
  }
  QualityRecord quality{.kl_divergence = 0.02, .kl_divergence_error = 0.004, .top_1_agreement = 0.95};
  EXPECT_NE(beyond_limit(limit, quality).find("KL divergence"), std::string::npos);
  quality.kl_divergence_error = 0.006;
  EXPECT_EQ(beyond_limit(limit, quality), "") << "0.02 +- 0.012 may be 0.01";
  quality.log_ratio = 0.03;
  quality.log_ratio_error = 0.001;
  EXPECT_NE(beyond_limit(limit, quality).find("perplexity"), std::string::npos);
  quality.log_ratio = 0;
  quality.top_1_agreement = 0.85;
  quality.top_1_agreement_error = 0.01;
  EXPECT_NE(beyond_limit(limit, quality).find("most probable"), std::string::npos);
}

class QualityTest : public LaunchRunnerTest {
 protected:
  QualityTest() {
    quality_.ids = std::vector<std::int64_t>(static_cast<std::size_t>(kQualityContext + 3 * kQualitySteps), 2);
    behaviours_["causal"].logits = {0, 1, 2, 4};
    behaviours_["near"].logits = {0, 1, 2, 3.9F};
    behaviours_["far"].logits = {0, 1, 3.8F, 3.9F};
    behaviours_["near"].logit_bound = behaviours_["far"].logit_bound = 0.9;
  }

  const QualityRecord& quality_of(const RunData& data, const std::string& arm) {
    const auto found = std::ranges::find(data.arms, arm, &ArmRecord::label);
    return *std::ranges::find(data.qualities, found->id, &QualityRecord::arm_id);
  }
};

TEST_F(QualityTest, IsKeptForEveryArmOfARunOnce) {
  add_run({"causal", "near", "far"}, {2, 4});
  launch(0);
  const RunData data = store_->load_run(run_);
  ASSERT_EQ(data.qualities.size(), 3U);
  EXPECT_EQ(quality_of(data, "causal").kl_divergence, 0);
  EXPECT_EQ(quality_of(data, "near").tokens, 3 * kQualitySteps);
  EXPECT_GT(quality_of(data, "near").kl_divergence, 0);
  EXPECT_GT(quality_of(data, "far").kl_divergence, quality_of(data, "near").kl_divergence);
  const std::size_t asked = log_.outputs.size();
  launch(1);
  EXPECT_EQ(store_->load_run(run_).qualities, data.qualities);
  EXPECT_EQ(std::count(log_.outputs.begin() + static_cast<std::ptrdiff_t>(asked), log_.outputs.end(), "far b3"), 0);
}

TEST_F(QualityTest, BeyondALimitMakesAnArmIncorrectEverywhere) {
  quality_.limit = parse_quality_limit("kl=0.01");
  add_run({"causal", "near", "far"}, {2, 4});
  launch(0);
  for (const std::size_t cell : {0U, 1U}) {
    EXPECT_EQ(row("near", cell).status, RowStatus::ok) << row("near", cell).reason;
    EXPECT_EQ(row("far", cell).status, RowStatus::incorrect);
    EXPECT_NE(row("far", cell).reason.find("--quality-limit allows 0.01"), std::string::npos);
  }
  EXPECT_EQ(std::ranges::count(log_.visits, "far"), 0) << "it is not timed";
}

TEST_F(QualityTest, IsAReasonWhereThereIsNoReferenceInFp32) {
  dtype_ = "bf16";
  add_run({"causal", "near"});
  launch(0);
  const RunData data = store_->load_run(run_);
  EXPECT_NE(quality_of(data, "near").reason.find("there is no reference in fp32"), std::string::npos);
  EXPECT_EQ(row("near").status, RowStatus::ok);
}

TEST_F(QualityTest, IsMeasuredBesideTheReferenceInFp32) {
  dtype_ = "bf16";
  behaviours_["exact"].logits = {0, 1, 2, 4.1F};
  add_run({"causal"});
  launch(0);
  EXPECT_GT(quality_of(store_->load_run(run_), "causal").kl_divergence, 0);
}

}  // namespace
}  // namespace decodelab
