// Rows that are cut from prompts of a person.
#include "bench/plan/prompts.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "bench/plan/sweep_plan.h"

namespace decodelab {
namespace {

using Rows = std::vector<std::vector<std::int64_t>>;

const std::vector<RealPrompt> kPrompts{{.ids = {1, 2, 3}}, {.ids = {4}}, {.ids = {5, 6}}};

TEST(Prompts, FillARowUpWithThosePromptsThatFollow) {
  EXPECT_EQ(cell_prompts(kPrompts, 1, 4, 5, 100),
            (Rows{{1, 2, 3, 4, 5}, {4, 5, 6, 1, 2}, {5, 6, 1, 2, 3}, {1, 2, 3, 4, 5}}));
  EXPECT_EQ(cell_prompts(kPrompts, 1, 1, 2, 100), (Rows{{1, 2}}));
}

TEST(Prompts, AreRandomIdsWhereNobodyWroteAny) {
  EXPECT_EQ(cell_prompts({}, 7, 2, 5, 100), random_prompts(7, 2, 5, 100));
  EXPECT_NE(random_prompts(7, 2, 5, 100), random_prompts(8, 2, 5, 100));
}

TEST(Prompts, OfIdsNeedNoTokenizerAndStayInTheVocabulary) {
  const ModelText text{.tokenizer = {}, .why_not = "it has none", .begin_ids = {}, .chat = {}};
  const std::vector<RealPrompt> prompts = real_prompts("--prompts", {{.ids = {3, 99}, .prompt_class = "x"}}, text, 100);
  EXPECT_EQ(prompts, (std::vector<RealPrompt>{{.prompt_class = "x", .ids = {3, 99}}}));
  try {
    real_prompts("--prompts", {{.ids = {3}}, {.ids = {100}}}, text, 100);
    FAIL() << "an id outside of the vocabulary was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--prompts: prompt 2 has the token id 100, but the vocabulary has the ids 0 to 99");
  }
  EXPECT_THROW(real_prompts("--prompts", {{.text = "words"}}, text, 100), std::invalid_argument);
}

TEST(Prompts, StandInThePlanOfARunAndMakeItFillCachesByAPrefillAsARealModelDoes) {
  const LaunchPlan plan{.prompts = {{.text = "Once", .prompt_class = "story", .ids = {1, 2}}, {.ids = {3}}}};
  EXPECT_EQ(launch_plan_from_json(to_json(plan)).prompts, plan.prompts);
  EXPECT_TRUE(launch_plan_from_json(to_json(LaunchPlan{})).prompts.empty());
  SweepRequest request{.model = "synthetic:tiny"};
  EXPECT_EQ(fill_of(request), "random");
  request.prompts = plan.prompts;
  EXPECT_EQ(fill_of(request), "generated");
  EXPECT_EQ(fill_of(SweepRequest{.model = "smollm2"}), "generated");
  EXPECT_EQ(fill_of(SweepRequest{.model = "smollm2", .fill = "random"}), "random");
}

}  // namespace
}  // namespace decodelab
