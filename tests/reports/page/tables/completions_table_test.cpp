// Completions grouped by prompt and answer.
#include "reports/page/tables/completions_table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/page/exports/json.h"

namespace decodelab {
namespace {

RunData run_that_says(std::vector<CompletionRecord> completions) {
  RunData data;
  data.run.id = 3;
  data.arms = {{.id = 1, .label = "causal", .baseline = true}, {.id = 2, .label = "native"}};
  data.completions = std::move(completions);
  return data;
}

TEST(CompletionsTable, HasOneRowForAPromptWhereAllArmsSayTheSame) {
  const Table table = completions_table(run_that_says(
      {{.arm_id = 1, .prompt = 0, .prompt_text = "Once", .prompt_class = "story", .token_ids = {4}, .text = " upon"},
       {.arm_id = 2, .prompt = 0, .prompt_text = "Once", .prompt_class = "story", .token_ids = {4}, .text = " upon"}}));
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].run_id, 3);
  EXPECT_EQ(table.rows[0].fields, (std::vector<std::string>{"story: Once", " upon", "all"}));
  EXPECT_NE(table.notes.at(0).find("every arm says the same"), std::string::npos);
}

TEST(CompletionsTable, NamesTheArmsThatDiffer) {
  const Table table =
      completions_table(run_that_says({{.arm_id = 1, .prompt = 0, .prompt_tokens = 9, .token_ids = {4, 5}},
                                       {.arm_id = 2, .prompt = 0, .prompt_tokens = 9, .token_ids = {}}}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].fields, (std::vector<std::string>{"9 tokens", "token ids 4, 5", "causal"}));
  EXPECT_EQ(table.rows[1].fields, (std::vector<std::string>{"9 tokens", "(nothing: the text ends here)", "native"}));
  EXPECT_NE(table.notes.at(0).find("In fp32 it is a fault"), std::string::npos);
}

TEST(CompletionsTable, ShowsTheEndOfALongPromptFromAWholeCharacterOn) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += "\xc3\xa4";
  }
  text += "!";
  const Table table =
      completions_table(run_that_says({{.arm_id = 1, .prompt = 0, .prompt_text = text, .token_ids = {1}}}));
  const std::string shown = table.rows.at(0).fields.at(0);
  EXPECT_EQ(shown.substr(0, 5), "...\xc3\xa4");
  EXPECT_EQ(shown.back(), '!');
}

TEST(CompletionsTable, HasTheSameCompletionsAsJson) {
  const nlohmann::ordered_json json = completions_to_json(run_that_says({{.arm_id = 1,
                                                                          .prompt = 2,
                                                                          .prompt_text = "Say",
                                                                          .prompt_class = "talk",
                                                                          .prompt_tokens = 1,
                                                                          .token_ids = {4, 5},
                                                                          .text = "yes"}}));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0].at("prompt"), 2);
  EXPECT_EQ(json[0].at("text"), "yes");
  EXPECT_EQ(json[0].at("token_ids"), (nlohmann::ordered_json{4, 5}));
  EXPECT_TRUE(json[0].at("arm").is_string());
}

TEST(CompletionsTable, IsEmptyWithoutPrompts) { EXPECT_TRUE(completions_table(run_that_says({})).rows.empty()); }

}  // namespace
}  // namespace decodelab
