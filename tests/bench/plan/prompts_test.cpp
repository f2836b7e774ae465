// Rows that are cut from prompts of a person.
#include "bench/plan/prompts.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "bench/plan/sweep_plan.h"
#include "tests/engine/checkpoint/mutator.h"

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
  const ModelText text{.tokenizer = {}, .why_not = "it has none", .affixes = {}, .chat = {}};
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

TEST(RequestLines, ReadTheirSettingsAndKeepABrokenLineInItsPlace) {
  const std::vector<PromptLine> lines = parse_request_lines(
      "{\"prompt\": \"a\", \"max_tokens\": 3, \"stop\": \".\", \"temperature\": 0.5, \"seed\": 7, \"sample\": true}\n"
      "\n{\"prompt\": \"a\", \"seed\": -1}\n{\"prompt_ids\": [1], \"stop\": [\"x\", \"y\"], \"allow_ids\": [2, 3], "
      "\"forbid_eos\": true, \"regex\": \"b+\"}\n{\"prompt_ids\": [1], \"regex\": 3}\n{\"prompt_ids\": [1], \"top_p\": "
      "\"1\"}",
      "requests");
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].settings.max_tokens, 3);
  EXPECT_EQ(lines[0].settings.stop, std::vector<std::string>{"."});
  EXPECT_EQ(lines[0].settings.temperature, 0.5);
  EXPECT_EQ(lines[0].settings.seed, 7);
  EXPECT_EQ(lines[0].settings.sample, true);
  EXPECT_FALSE(lines[0].settings.top_k.has_value());
  EXPECT_EQ(lines[1].error, "requests, line 3: key 'seed': expected a whole number, 0 or more");
  EXPECT_EQ(lines[2].settings.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(lines[2].settings.allow_ids, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(lines[2].settings.forbid_eos, true);
  EXPECT_EQ(lines[2].settings.regex, "b+");
  EXPECT_NE(lines[3].error.find("key 'regex'"), std::string::npos);
  EXPECT_NE(lines[4].error.find("key 'top_p': expected a number"), std::string::npos);
  EXPECT_THROW(parse_prompt_lines("{\"prompt\": \"a\", \"seed\": 1}", "prompts"), std::invalid_argument)
      << "a sweep has no use for settings";
  EXPECT_THROW(parse_request_lines("\n", "requests"), std::invalid_argument);
}

TEST(Fuzz, RequestLinesAreReadOrRefused) {
  const std::string file =
      "{\"prompt\": \"a\", \"max_tokens\": 3, \"stop\": [\".\"], \"temperature\": 0.5, \"seed\": 7, \"sample\": true}\n"
      "{\"prompt_ids\": [1, 2], \"allow_ids\": [2, 3], \"forbid_eos\": true, \"regex\": \"b+\", \"class\": \"x\"}";
  fuzz(file, [](const std::string& whole, Mutator& mutator) {
    for (const PromptLine& line : parse_request_lines(mutator.mutate(whole), "fuzz")) {
      if (!line.error.empty()) {
        throw std::invalid_argument(line.error);
      }
      ASSERT_NE(line.text.empty(), line.ids.empty());
    }
  });
}

}  // namespace
}  // namespace decodelab
