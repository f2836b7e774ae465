// Chat templates: the prompts that real ones give, and what is refused.
#include "engine/checkpoint/chat_template.h"

#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/chat_expression.h"
#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

// Written as Hugging Face publishes it beside SmolLM2-135M-Instruct.
constexpr const char* kSmollm2Template =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou "
    "are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\\n' }}{% endif %}";

std::string rendered(const std::string& text, const std::vector<ChatMessage>& messages = {{"user", "Hi"}}) {
  return ChatTemplate{.text = text, .bos_token = "<s>", .eos_token = "</s>", .file_name = "t.jinja"}.render(messages);
}

std::string refusal_of(const std::string& text) {
  return refusal([&] { rendered(text); });
}

std::string value(std::string_view expression) {
  return chat_text(evaluate_chat_expression(
      expression, {{"list", {1, 2, 3}}, {"word", " Kant "}, {"map", {{"role", "user"}}}, {"none", nullptr}}));
}

TEST(ChatTemplate, OfSmolLM2BeginsWithASystemMessageOfItsOwn) {
  EXPECT_EQ(rendered(kSmollm2Template),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(rendered(kSmollm2Template, {{"system", "Be brief."}, {"user", "Hi"}}),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, MayHoldWhatAConversationDoesNotReach) {
  EXPECT_EQ(
      rendered("{%- if tools is defined %}\n  {{ tools | tojson(indent=4) | unknown }}\n  {%- macro x %}{%- endif %}\n"
               "{{- bos_token }}\n{%- for m in messages %}\n    {%- if m.role == 'user' %}\n"
               "        {{- '[INST] ' ~ m.content | trim + ' [/INST]' }}\n    {%- elif m.role == 'tool' %}\n"
               "        {{- raise_exception('none') }}\n    {%- else %}{{ m['content'] + eos_token }}{%- endif %}\n"
               "{%- endfor %}"),
      "<s>[INST] Hi [/INST]");
}

TEST(ChatTemplate, BlocksTakeTheirLineAwayAsInTransformers) {
  EXPECT_EQ(rendered("a\n  {% if true %}\n  b {# note #}\n{{ 'c' }}\n{% endif %}\nd"), "a\n  b c\nd");
  EXPECT_EQ(rendered("a \n {%- if true -%} \n b {%- endif %} c"), "ab c");
}

TEST(ChatTemplate, SetsNamesAndLosesThoseOfALoopBehindIt) {
  EXPECT_EQ(
      rendered("{% set x = 'a' %}{% for m in messages %}{% set x = 'b' %}{{ x }}{{ loop.index }}{% endfor %}{{ x }}"),
      "b1a");
  EXPECT_EQ(rendered("{% for m in messages[1:] %}{{ m.role }}{% endfor %}.",
                     {{"system", "a"}, {"user", "b"}, {"assistant", "c"}}),
            "userassistant.");
  EXPECT_EQ(rendered("{{ messages | length }}{% for m in messages %}{{ loop.last }}{% endfor %}",
                     {{"user", "a"}, {"user", "b"}}),
            "2FalseTrue");
}

TEST(ChatExpression, ComputesAsJinjaDoes) {
  EXPECT_EQ(value("1 + 2 * 3 - 4 % 3"), "6");
  EXPECT_EQ(value("-1 % 3"), "2");
  EXPECT_EQ(value("word[1:3] ~ list[1:] | length"), "Ka2");
  EXPECT_EQ(value("([1] + [2]) | last"), "2");
  EXPECT_EQ(value("'a\"b' | tojson"), R"("a\"b")");
}

TEST(ChatExpression, DecidesAsJinjaDoes) {
  EXPECT_EQ(value("not '' and 'x' or undefined.attribute"), "x");
  EXPECT_EQ(value("'yes' if list[-1] == 3 and 2 in list else unknown_function()"), "yes");
  EXPECT_EQ(value("unknown_function() if false else word.strip().lower()"), "kant");
  EXPECT_EQ(value("missing is defined"), "False");
  EXPECT_EQ(value("missing != 'x'"), "True");
  EXPECT_EQ(value("map.role is string and map.content is not defined"), "True");
  EXPECT_EQ(value("'us' in map.role and map.role.startswith('u') and 4 not in list"), "True");
  EXPECT_EQ(value("(1 < 2) == (3 >= 4)"), "False");
  EXPECT_EQ(value("missing | default('d')"), "d");
}

TEST(ChatTemplate, RefusesWhatItDoesNotKnowByName) {
  EXPECT_TRUE(says(refusal_of(""), {"expected a chat template, got none"}));
  EXPECT_TRUE(says(refusal_of("{% macro f() %}"), {"'macro f()'"}));
  EXPECT_TRUE(says(refusal_of("{{ messages | sort }}"), {"'sort'"}));
  EXPECT_TRUE(says(refusal_of("{{ messages }}"), {"a text or a number to print"}));
  EXPECT_TRUE(says(refusal_of("{{ namespace(a=1) }}"), {"expected ')'"}));
  EXPECT_TRUE(says(refusal_of("{{ range(3) }}"), {"'range'"}));
  EXPECT_TRUE(says(refusal_of("{{ raise_exception('Only pairs') }}"), {"Only pairs"}));
  EXPECT_TRUE(says(refusal_of("{{ a.b }}"), {"a defined value before [b]"}));
  EXPECT_TRUE(says(refusal_of("{% if true %}"), {"an endif"}));
  EXPECT_TRUE(says(refusal_of("{% for m in messages %}"), {"an endfor"}));
  EXPECT_TRUE(says(refusal_of("{% endif %}"), {"outside of a block"}));
  EXPECT_TRUE(says(refusal_of("{{ 'a }}"), {"expected '}}'"}));
  EXPECT_TRUE(says(refusal_of("{% for m in 3 %}{% endfor %}"), {"'for NAME in LIST'"}));
  EXPECT_TRUE(says(refusal_of("{% for m in messages if m %}{% endfor %}"), {"'else'"}));
  EXPECT_TRUE(says(refusal_of("{% set a.b = 1 %}"), {"'set NAME = VALUE'"}));
  EXPECT_TRUE(says(refusal_of("{{ 9223372036854775807 + 1 }}"), {"two values that + goes with"}));
  std::string nested = "1";
  for (int i = 0; i < 1000; ++i) {
    nested = "(" + nested + ")";
  }
  EXPECT_TRUE(says(refusal_of("{{ " + nested + " }}"), {"nested"}));
}

}  // namespace
}  // namespace decodelab
