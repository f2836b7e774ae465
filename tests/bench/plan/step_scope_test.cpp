// Scopes as words and back, and which phase has which.
#include "bench/plan/step_scope.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(StepScope, IsReadBackFromItsWord) {
  for (const char* word : {"step", "forward", "step-at-length", "forward-at-length", "step-visible-end", "serving"}) {
    EXPECT_EQ(to_string(step_scope_from_string(word)), word);
  }
  EXPECT_TRUE(step_scope_from_string("forward-at-length").forward);
  EXPECT_TRUE(step_scope_from_string("forward-at-length").at_length);
}

TEST(StepScope, CountsTheRowsOfEachPrompt) {
  EXPECT_EQ(step_scope_from_string("step-samples-4").samples, 4);
  EXPECT_EQ(to_string(StepScope{.forward = true, .samples = 12}), "forward-samples-12");
  EXPECT_EQ(scope_of(Phase::generate, {.warped = true, .samples = 3}), "generate-warped-samples-3");
  EXPECT_EQ(scope_of(Phase::decode, {.samples = 3}), "step") << "rows of a decode step share no prompt";
  EXPECT_EQ(scope_of_cell(Phase::generate, "generate-warped-samples-3").samples, 3);
  EXPECT_EQ(scope_of_cell(Phase::generate, "generate").samples, 1);
  EXPECT_EQ(scope_of_cell(Phase::prefill, "step-samples-2").samples, 2);
  EXPECT_EQ(scope_of_cell(Phase::batching, "first-token-at-2").samples, 1);
  for (const char* word : {"step-samples-1", "step-samples-", "step-samples-x", "step-samples-2-warped"}) {
    EXPECT_THROW(step_scope_from_string(word), std::invalid_argument) << word;
  }
}

TEST(StepScope, ServingIsOneScopeOfEveryPhaseThatAServerHas) {
  const StepScope asked{.serving = true};
  for (const Phase phase : {Phase::prefill, Phase::decode, Phase::generate}) {
    EXPECT_EQ(scope_of(phase, asked), "serving");
    EXPECT_TRUE(scope_of_cell(phase, "serving").serving);
    EXPECT_FALSE(scope_of_cell(phase, phase == Phase::generate ? "generate" : "step").serving);
  }
  EXPECT_EQ(scope_of(Phase::generate, {.serving = true, .samples = 2}), "serving-samples-2");
  EXPECT_EQ(scope_of_cell(Phase::generate, "serving-samples-2"), (StepScope{.serving = true, .samples = 2}));
  EXPECT_EQ(scope_of(Phase::continuation, asked), "continue");
  EXPECT_THROW(step_scope_from_string(to_string(StepScope{.serving = true, .warped = true})), std::invalid_argument);
}

TEST(StepScope, RefusesWhatDoesNotGoTogetherAndNamesWhatDoes) {
  for (const char* word : {"", "steps", "forward-visible-end", "step-at-length-visible-end", "generate"}) {
    try {
      step_scope_from_string(word);
      FAIL() << word;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("step-at-length"), std::string::npos) << error.what();
    }
  }
}

TEST(StepScope, OfAPrefillHasNoLengthToGoBackTo) {
  const StepScope asked{.forward = true, .at_length = true};
  EXPECT_EQ(scope_of(Phase::prefill, asked), "forward");
  EXPECT_EQ(scope_of(Phase::decode, asked), "forward-at-length");
  EXPECT_EQ(scope_of(Phase::generate, asked), "generate");
  const StepScope warped{.warped = true};
  EXPECT_EQ(scope_of(Phase::prefill, warped), "step-warped") << "times of another choice stand in another table";
  EXPECT_EQ(scope_of(Phase::generate, warped), "generate-warped");
}

}  // namespace
}  // namespace decodelab
