// Scopes as words and back, and which phase has which.
#include "bench/plan/step_scope.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(StepScope, IsReadBackFromItsWord) {
  for (const char* word : {"step", "forward", "step-at-length", "forward-at-length", "step-visible-end"}) {
    EXPECT_EQ(to_string(step_scope_from_string(word)), word);
  }
  EXPECT_TRUE(step_scope_from_string("forward-at-length").forward);
  EXPECT_TRUE(step_scope_from_string("forward-at-length").at_length);
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
  EXPECT_EQ(scope_of("prefill", asked), "forward");
  EXPECT_EQ(scope_of("decode", asked), "forward-at-length");
  EXPECT_EQ(scope_of("generate", asked), "generate");
  const StepScope warped{.warped = true};
  EXPECT_EQ(scope_of("prefill", warped), "step-warped") << "times of another choice stand in another table";
  EXPECT_EQ(scope_of("generate", warped), "generate-warped");
}

}  // namespace
}  // namespace decodelab
