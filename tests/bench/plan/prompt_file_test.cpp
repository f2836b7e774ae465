// Prompts in a file: what is read, and that everything else is refused by its line.
#include "bench/plan/prompt_file.h"

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

std::string refusal_of(std::string_view text) {
  return refusal([&] { parse_prompt_lines(text, "p.jsonl"); });
}

TEST(PromptFile, HasAPromptALine) {
  const auto prompts = parse_prompt_lines(
      "{\"prompt\": \"Once\", \"class\": \"tale\"}\n\n{\"prompt_ids\": [3, 0]}\r\n{\"prompt\": \"Why?\", \"chat\": "
      "true}",
      "p.jsonl");
  ASSERT_EQ(prompts.size(), 3u);
  EXPECT_EQ(prompts[0].text, "Once");
  EXPECT_EQ(prompts[0].prompt_class, "tale");
  EXPECT_FALSE(prompts[0].chat);
  EXPECT_EQ(prompts[1].ids, (std::vector<std::int64_t>{3, 0}));
  EXPECT_TRUE(prompts[2].chat);
}

TEST(PromptFile, NamesTheLineThatItRefuses) {
  EXPECT_TRUE(says(refusal_of("{\"prompt\": \"a\"}\n{\"promt\": \"b\"}"), {"p.jsonl, line 2", "'promt'"}));
  EXPECT_TRUE(says(refusal_of("{\"prompt\": \"\"}"), {"key 'prompt': expected a text that is not empty"}));
  EXPECT_TRUE(says(refusal_of("{\"prompt\": \"a\", \"prompt_ids\": [1]}"), {"expected either"}));
  EXPECT_TRUE(says(refusal_of("{\"prompt_ids\": [1, -1]}"), {"a list of token ids"}));
  EXPECT_TRUE(says(refusal_of("{\"prompt_ids\": []}"), {"a list of token ids"}));
  EXPECT_TRUE(says(refusal_of("{\"prompt_ids\": [1], \"chat\": true}"), {"key 'chat'"}));
  EXPECT_TRUE(says(refusal_of("{\"prompt\": \"a\", \"chat\": 1}"), {"true or false"}));
  EXPECT_TRUE(says(refusal_of("[1]"), {"line 1"}));
  EXPECT_TRUE(says(refusal_of("\n \n"), {"a JSON object on each line"}));
}

}  // namespace
}  // namespace decodelab
