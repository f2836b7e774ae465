// Tests of the rules for "same outputs": each kind of difference is found at its place, and rounding is not one.
#include "bench/measure/verification.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

/// By the rule of our own engine: fp32 runs free, 16-bit types are fed the reference's tokens.
VerificationResult compare_outputs(const OutputTrace& reference, const OutputTrace& candidate, std::string_view dtype) {
  return dtype == "float32" ? compare_free_running(reference, candidate)
                            : compare_teacher_forced(reference, candidate, dtype);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Two steps of two rows over three ids; the largest logit of every row is 10.
OutputTrace sample() {
  return {
      .tokens = {{0, 1}, {2, 0}}, .logits = {{10, 1, -2, 3, 10, 0}, {1, 2, 10, 10, 4, 5}}, .batch = 2, .vocabulary = 3};
}

void expect_difference(const VerificationResult& result, std::string_view part) {
  EXPECT_FALSE(result.correct);
  EXPECT_NE(result.difference.find(part), std::string::npos) << result.difference;
  EXPECT_EQ(result.difference.empty() ? ' ' : result.difference.back(), '.') << result.difference;
}

TEST(Verification, HasOneToleranceForEachDtype) {
  EXPECT_EQ(logit_tolerance("float32"), 1e-3);
  EXPECT_EQ(logit_tolerance("float16"), 5e-3);
  EXPECT_EQ(logit_tolerance("bfloat16"), 3e-2);
  EXPECT_EQ(logit_tolerance("bf16"), logit_tolerance("bfloat16"));
  EXPECT_THROW(logit_tolerance("int8"), std::invalid_argument);
}

TEST(Verification, AcceptsARunThatEqualsTheReference) {
  for (const char* dtype : {"float32", "float16", "bfloat16"}) {
    const VerificationResult result = compare_outputs(sample(), sample(), dtype);
    EXPECT_TRUE(result.correct) << result.difference;
    EXPECT_EQ(result.difference, "");
    EXPECT_EQ(result.ties, 0);
    EXPECT_EQ(result.worst, 0);
  }
}

TEST(Agreement, IsWholeBetweenARunAndItself) {
  const std::optional<Agreement> agreement = agreement_of(sample(), sample());
  ASSERT_TRUE(agreement);
  EXPECT_EQ(*agreement, (Agreement{.logit_error = 0, .kl_divergence = 0, .top_1_agreement = 1}));
}

TEST(Agreement, HasTheLargestErrorTheMeanDivergenceAndTheShareOfEqualChoices) {
  OutputTrace candidate = sample();
  candidate.logits[1] = {1, 2, 10, 4, 10, 5};  // of the last row the first two are swapped
  const std::optional<Agreement> agreement = agreement_of(sample(), candidate);
  ASSERT_TRUE(agreement);
  EXPECT_DOUBLE_EQ(agreement->logit_error, 0.6);
  // By NumPy: p = softmax([10, 4, 5]), q = softmax([4, 10, 5]), (p * (log(p) - log(q))).sum() / 4 rows.
  EXPECT_NEAR(agreement->kl_divergence, 1.4826170365, 1e-9);
  EXPECT_DOUBLE_EQ(agreement->top_1_agreement, 0.75);
  EXPECT_GT(agreement_of(candidate, sample())->kl_divergence, 0);
}

TEST(Agreement, IsUnchangedByWhatSoftmaxDoesNotSeeExceptForTheError) {
  OutputTrace candidate = sample();
  for (std::vector<float>& step : candidate.logits) {
    for (float& logit : step) {
      logit += 2;
    }
  }
  const std::optional<Agreement> agreement = agreement_of(sample(), candidate);
  ASSERT_TRUE(agreement);
  EXPECT_NEAR(agreement->kl_divergence, 0, 1e-12);
  EXPECT_EQ(agreement->top_1_agreement, 1);
  EXPECT_DOUBLE_EQ(agreement->logit_error, 0.2);
}

TEST(Agreement, IsNothingWhereRunsCannotBeCompared) {
  OutputTrace none = sample();
  none.logits.clear();
  EXPECT_FALSE(agreement_of(sample(), none));
  EXPECT_FALSE(agreement_of(none, none));
  OutputTrace shorter = sample();
  shorter.tokens.pop_back();
  shorter.logits.pop_back();
  EXPECT_FALSE(agreement_of(sample(), shorter));
  OutputTrace broken = sample();
  broken.logits[0][1] = kNan;
  EXPECT_FALSE(agreement_of(sample(), broken));
}

TEST(FreeRunning, NamesTheFirstTokenThatDiffers) {
  OutputTrace candidate = sample();
  candidate.tokens = {{0, 1}, {2, 1}};
  EXPECT_EQ(compare_free_running(sample(), candidate).difference,
            "Step 1, row 1: the arm chose id 1, the reference id 0.");
  candidate.tokens = {{0, 2}, {1, 1}};
  EXPECT_EQ(compare_free_running(sample(), candidate).difference,
            "Step 0, row 1: the arm chose id 2, the reference id 1.");
}

TEST(FreeRunning, TakesATokenForADifferenceHoweverNearTheLogitsAre) {
  OutputTrace reference = sample();
  reference.logits[0][1] = 10;
  OutputTrace candidate = reference;
  candidate.tokens[0][0] = 1;
  expect_difference(compare_free_running(reference, candidate), "Step 0, row 0");
}

TEST(FreeRunning, CallsAnotherChoiceANearTieOnlyWhereRoundingAloneCanMakeIt) {
  // The largest logit of the row is 10: in float32 rounding moves logits by 0.001 of it.
  const auto differs = [](float of_reference, std::vector<float> row, std::int64_t chosen) {
    OutputTrace reference = sample();
    reference.logits[0][1] = of_reference;
    OutputTrace candidate = sample();
    std::ranges::copy(row, candidate.logits[0].begin());
    candidate.tokens[0][0] = chosen;
    const VerificationResult result = compare_free_running(reference, candidate);
    expect_difference(result, "Step 0, row 0: the arm chose id 1");
    return result;
  };
  EXPECT_TRUE(differs(9.9995F, {9.9995F, 10, -2}, 1).near_tie);
  EXPECT_FALSE(differs(9.9995F, {10, 9.9995F, -2}, 1).near_tie) << "it did not choose its own largest";
  EXPECT_FALSE(differs(10, {10, 10, -2}, 1).near_tie) << "of equal logits the first is chosen";
  EXPECT_FALSE(differs(9.9975F, {9.999F, 10, -2}, 1).near_tie) << "the reference's two largest lie too far apart";
  EXPECT_FALSE(differs(9.9995F, {9.9995F, 10, -2.02F}, 1).near_tie)
      << "another logit is off by more than the tolerance";
  EXPECT_FALSE(compare_free_running(sample(), sample()).near_tie);
}

TEST(AfterANearTie, CountsTheTiesAndTakesNoOtherChoiceForOne) {
  OutputTrace reference = sample();
  reference.logits[0][1] = 9.9995F;
  OutputTrace candidate = sample();
  candidate.logits[0][0] = 9.9995F;
  candidate.logits[0][1] = 10;
  candidate.tokens[0][0] = 1;
  const VerificationResult tie = compare_after_near_tie(reference, candidate);
  EXPECT_TRUE(tie.correct) << tie.difference;
  EXPECT_EQ(tie.ties, 1);
  candidate.logits[1][1] += 0.012F;
  expect_difference(compare_after_near_tie(reference, candidate), "Step 1, row 0: logits differ by 0.0012");
  reference.logits[0][1] = 9.995F;
  expect_difference(compare_after_near_tie(reference, candidate),
                    "Step 0, row 0: the arm's largest logit is at id 1, the reference's at id 0 by a gap of 0.005; "
                    "expected the same id above 0.002.");
}

TEST(FreeRunning, ReportsTheWorstLogitRelativeToItsRow) {
  OutputTrace candidate = sample();
  candidate.logits[1][1] += 5e-4F;
  const VerificationResult result = compare_free_running(sample(), candidate);
  EXPECT_TRUE(result.correct) << result.difference;
  EXPECT_NEAR(result.worst, 5e-5, 1e-7);
}

TEST(FreeRunning, TakesLogitsBeyondTheToleranceForADifference) {
  OutputTrace candidate = sample();
  candidate.logits[1][1] += 0.009F;
  EXPECT_TRUE(compare_free_running(sample(), candidate).correct);
  candidate.logits[1][1] += 0.002F;
  const VerificationResult result = compare_free_running(sample(), candidate);
  expect_difference(result, "Step 1, row 0: logits differ by 0.0011");
  EXPECT_NEAR(result.worst, 1.1e-3, 1e-5);
}

TEST(FreeRunning, ComparesTokensAloneWhereNeitherRunHasLogits) {
  OutputTrace reference = sample();
  reference.logits.clear();
  OutputTrace candidate = reference;
  EXPECT_TRUE(compare_free_running(reference, candidate).correct);
  candidate.tokens[1][0] = 0;
  expect_difference(compare_free_running(reference, candidate), "Step 1, row 0");
}

TEST(TeacherForced, AcceptsLogitsWithinTheToleranceAndNoFurther) {
  OutputTrace candidate = sample();
  candidate.logits[0][4] += 0.29F;
  const VerificationResult near = compare_teacher_forced(sample(), candidate, "bfloat16");
  EXPECT_TRUE(near.correct) << near.difference;
  EXPECT_NEAR(near.worst, 0.029, 1e-6);
  expect_difference(compare_teacher_forced(sample(), candidate, "float16"),
                    "Step 0, row 1: logits differ by 0.029 of the largest");
  candidate.logits[0][4] += 0.02F;
  expect_difference(compare_teacher_forced(sample(), candidate, "bfloat16"), "Step 0, row 1");
}

TEST(TeacherForced, MeasuresTheErrorByTheReferencesLargestMagnitude) {
  OutputTrace reference = sample();
  reference.logits[0][2] = -100;  // Row 0 of step 0.
  OutputTrace candidate = reference;
  candidate.logits[0][1] += 1.5F;
  EXPECT_NEAR(compare_teacher_forced(reference, candidate, "bfloat16").worst, 0.015, 1e-6);
}

TEST(TeacherForced, CountsAnotherLargestLogitWithinTheTieRule) {
  OutputTrace reference = sample();
  reference.logits[1] = {1, 9.9F, 10, 10, 4, 5};
  OutputTrace candidate = reference;
  candidate.logits[1][1] = 10.09F;
  const VerificationResult forced = compare_teacher_forced(reference, candidate, "bfloat16");
  EXPECT_TRUE(forced.correct) << forced.difference;
  EXPECT_EQ(forced.ties, 1);
  candidate.tokens[1][0] = 1;  // The arm's own choice instead of the token that it was fed.
  EXPECT_EQ(compare_teacher_forced(reference, candidate, "bfloat16").ties, 1);
}

TEST(TeacherForced, RefusesAnotherLargestLogitBeyondTheTieRule) {
  OutputTrace candidate = sample();
  candidate.logits[1] = {1, 10.7F, 10, 10, 4, 5};
  const VerificationResult result = compare_teacher_forced(sample(), candidate, "bfloat16");
  EXPECT_EQ(result.difference,
            "Step 1, row 0: the arm's largest logit is at id 1, the reference's at id 2 by a gap of 8; expected the "
            "same id above 0.6.");
  EXPECT_EQ(result.ties, 0);
}

TEST(TeacherForced, JudgesTheTieByTheGapOfTheReference) {
  // 0.6 is 2 * tolerance * max|b|; logits near 10 are spaced by 1e-6, so the gap is a hair beside it.
  for (const auto& [second, ties] : {std::pair(9.401F, 1), std::pair(9.399F, 0)}) {
    OutputTrace reference = sample();
    reference.logits[0][1] = second;
    OutputTrace candidate = reference;
    candidate.logits[0][0] = 9.79F;
    candidate.logits[0][1] = 9.8F;
    const VerificationResult result = compare_teacher_forced(reference, candidate, "bfloat16");
    EXPECT_EQ(result.ties, ties) << second;
    EXPECT_FALSE(result.correct) << "either way the logits moved by more than the tolerance";
    EXPECT_EQ(result.difference.find("gap") != std::string::npos, ties == 0) << result.difference;
  }
}

TEST(TeacherForced, CountsNoTieWhereTheArmsLargestLogitsAreEqual) {
  OutputTrace reference = sample();
  reference.logits[1] = {1, 9.99F, 10, 10, 4, 5};
  OutputTrace candidate = reference;
  candidate.logits[1][1] = 10;
  const VerificationResult result = compare_teacher_forced(reference, candidate, "float16");
  EXPECT_TRUE(result.correct) << result.difference;
  EXPECT_EQ(result.ties, 0);
}

TEST(TeacherForced, RefusesAChoiceThatItsOwnLogitsDoNotBear) {
  OutputTrace candidate = sample();
  candidate.tokens[1][1] = 2;
  expect_difference(compare_teacher_forced(sample(), candidate, "bfloat16"),
                    "Step 1, row 1: the arm chose id 2, though its largest logit is at id 0");
  candidate.tokens[1][1] = 99;
  expect_difference(compare_teacher_forced(sample(), candidate, "bfloat16"), "chose id 99");
}

TEST(TeacherForced, NeedsLogits) {
  OutputTrace trace = sample();
  trace.logits.clear();
  expect_difference(compare_teacher_forced(trace, trace, "float16"), "Neither run has logits");
}

TEST(TeacherForced, RefusesAnythingButZeroWhereTheReferenceIsZero) {
  OutputTrace reference = sample();
  reference.logits[0] = {0, 0, 0, 3, 10, 0};
  EXPECT_TRUE(compare_teacher_forced(reference, reference, "float16").correct);
  OutputTrace candidate = reference;
  candidate.logits[0][0] = 1e-6F;
  EXPECT_FALSE(compare_teacher_forced(reference, candidate, "float16").correct);
}

class EveryDtype : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Verification, EveryDtype, ::testing::Values("float32", "float16", "bfloat16"));

TEST_P(EveryDtype, TakesNanAndInfinityForADifference) {
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    for (std::size_t id = 0; id < 3; ++id) {
      OutputTrace broken = sample();
      broken.logits[1][id] = value;
      expect_difference(compare_outputs(sample(), broken, GetParam()),
                        "Step 1, row 0: the arm has a logit that is NaN or infinite");
      expect_difference(compare_outputs(broken, sample(), GetParam()),
                        "Step 1, row 0: the reference has a logit that is NaN");
      expect_difference(compare_outputs(broken, broken, GetParam()), "NaN or infinite");
    }
  }
}

TEST_P(EveryDtype, TakesShapesThatDifferForADifference) {
  OutputTrace candidate = sample();
  candidate.tokens.pop_back();
  expect_difference(compare_outputs(sample(), candidate, GetParam()), "logits of 2 steps");
  candidate.logits.pop_back();
  expect_difference(compare_outputs(sample(), candidate, GetParam()),
                    "The arm has 1 steps of 2 rows; expected 2 steps of 2 rows");

  candidate = sample();
  candidate.tokens[1].push_back(0);
  expect_difference(compare_outputs(sample(), candidate, GetParam()), "3 tokens at step 1");

  candidate = sample();
  candidate.logits[0].pop_back();
  expect_difference(compare_outputs(sample(), candidate, GetParam()), "5 logits at step 0");

  candidate = sample();
  candidate.logits.clear();
  expect_difference(compare_outputs(sample(), candidate, GetParam()), "logits of 0 steps");

  candidate = {.tokens = {{0}, {2}}, .logits = {{10, 1, -2}, {1, 2, 10}}, .batch = 1, .vocabulary = 3};
  expect_difference(compare_outputs(sample(), candidate, GetParam()), "2 steps of 1 rows");

  candidate = {.tokens = sample().tokens, .logits = {{1, 2, 3, 4}, {1, 2, 3, 4}}, .batch = 2, .vocabulary = 2};
  expect_difference(compare_outputs(sample(), candidate, GetParam()), "2 ids");
}

TEST_P(EveryDtype, TakesNoStepsForADifference) {
  const OutputTrace nothing = {.tokens = {}, .logits = {}, .batch = 2, .vocabulary = 3};
  expect_difference(compare_outputs(nothing, nothing, GetParam()), "0 steps");
}

}  // namespace
}  // namespace decodelab
