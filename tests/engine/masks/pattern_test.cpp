// The syntax of patterns, and what their automata match.
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/masks/byte_dfa.h"
#include "engine/masks/byte_nfa.h"
#include "engine/masks/code_points.h"

namespace decodelab {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  ByteDfa dfa(compile_pattern(pattern));
  const auto end = dfa.after(dfa.start(), text);
  return end != nullptr && end->accepting();
}

std::string refusal_of(const std::string& pattern) {
  try {
    compile_pattern(pattern);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

struct Matching {
  std::string pattern;
  std::vector<std::string> texts;
  std::vector<std::string> others;
};

TEST(Pattern, MatchesWholeTextsAsItsSyntaxSays) {
  const std::vector<Matching> cases{
      {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"^abc$", {"abc"}, {"ab", "abcd"}},
      {"a|bc|", {"a", "bc", ""}, {"abc", "b"}},
      {"(ab)*c", {"c", "ababc"}, {"abac", "ab"}},
      {"a+b?", {"a", "aaab"}, {"b", "abb"}},
      {"a{2}", {"aa"}, {"a", "aaa"}},
      {"a{2,}", {"aa", "aaaaa"}, {"a"}},
      {"a{,2}b", {"b", "aab"}, {"aaab"}},
      {"(a{1,2}){2}", {"aa", "aaaa"}, {"a", "aaaaa"}},
      {"(a*)*b", {"b", "aaab"}, {"a"}},
      {"(){1000000000}", {}, {}},
      {"[a-c-]+", {"a-c"}, {"d"}},
      {"[^a-c]", {"d", "\n", "é", "😀"}, {"a", "dd"}},
      {R"([\]\\\d]+)", {"]\\7"}, {"a"}},
      {".", {"x", "é", "😀"}, {"\n", "", "xy", "\xE9"}},
      {R"(\n\t\x41\u00e9\x{1F600})", {"\n\tAé😀"}, {"\n\tA"}},
      {"é+", {"ééé"}, {"\xC3"}},
      {R"(\w+ \d\s\W\D\S)", {"Straße 7 -a.", "λ 9\t .x"}, {"a 7 aaa"}},
      {R"(\p{Lu}\P{Lu})", {"Äb"}, {"ab", "ÄÖ"}},
      {"(?:x)(?<name>y)(?P<other>z)", {"xyz"}, {"xy"}},
      {R"(\{"a": (true|[0-9]+)\})", {R"({"a": 12})", R"({"a": true})"}, {R"({"a": })"}},
      {"(a|b)*abb", {"abb", "babababb"}, {"ab"}},
  };
  for (const Matching& it : cases) {
    if (it.texts.empty()) {
      continue;  // Its refusal is tested below.
    }
    for (const std::string& text : it.texts) {
      EXPECT_TRUE(matches(it.pattern, text)) << it.pattern << " and " << text;
    }
    for (const std::string& text : it.others) {
      EXPECT_FALSE(matches(it.pattern, text)) << it.pattern << " and " << text;
    }
  }
}

TEST(Pattern, IsRefusedWithItsReasonWhereItIsNotRegularOrMalformed) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the pattern is empty"},
      {"a(?=b)", "a look-around at byte 3"},
      {"(?<!a)b", "a look-around"},
      {"(a)\\1", "a back-reference"},
      {"\\k<a>", "a back-reference"},
      {"\\bword", "\\b at byte 1"},
      {"a\\Bb", "\\B"},
      {"a*?", "a lazy repetition"},
      {"a{1,2}?", "a lazy repetition"},
      {"a++", "a possessive repetition"},
      {"(?>a)", "an atomic group"},
      {"(?i)a", "inline flags"},
      {"(?R)", "a reference to a group"},
      {"(*ACCEPT)", "a verb"},
      {"a**", "a repetition of a repetition"},
      {"*a", "nothing before '*'"},
      {"a|{2}", "nothing before '{'"},
      {"a^b", "'^' within it"},
      {"a$b", "'$' within it"},
      {"\\Aa", "'\\A'"},
      {"(a", "a '(' without its ')'"},
      {"a)", "a ')' without its '('"},
      {"[a", "a '[' without its ']'"},
      {"[]a]", "a ']' first between brackets"},
      {"[[a]]", "a set of sets"},
      {"[z-a]", "ends before it begins"},
      {"a{2", "a '{' without its '}'"},
      {"a{3,2}", "at least 3 and at most 2"},
      {"a{1000001}", "more than 100000 repetitions"},
      {"\\", "a '\\' at its end"},
      {"\\q", "'\\q', which is not known"},
      {"\\x4", "a hexadecimal escape"},
      {"\\x{110000}", "a hexadecimal escape"},
      {"\\p{Nothing}", "is no class of characters"},
      {"\\p{", "without its '}'"},
      {"\xFF", "a byte that is not UTF-8"},
      {"[\\x{D800}]", "a surrogate"},
      {"[^\\s\\S]", "no text matches the pattern"},
      {"(?P<", "a group whose name does not end"},
      {"((a{1000}){1000}){1000}", "is too large"},
      {std::string(300, '(') + "a" + std::string(300, ')'), "groups within more than 200 groups"},
  };
  for (const auto& [pattern, reason] : cases) {
    EXPECT_NE(refusal_of(pattern).find(reason), std::string::npos) << pattern << ": " << refusal_of(pattern);
  }
}

TEST(Pattern, OfNothingRepeatedAnyNumberOfTimesIsSmall) {
  EXPECT_TRUE(matches("((){100000}){100000}", ""));
  EXPECT_TRUE(matches("((a?){0,3}){2}", "aaaaaa"));
}

TEST(Utf8Sequences, HaveTheBytesOfTheirCodePointsAndNoOthers) {
  for (const CodePoints& set :
       {CodePoints({{0, 0x10FFFF}}), CodePoints({{0x7E, 0x81}, {0x7FE, 0x801}, {0xFFFE, 0x10001}}),
        CodePoints({{0xD000, 0xE001}}), CodePoints({{0x900, 0x97F}, {0x1F600, 0x1F64F}})}) {
    std::int64_t points = 0;
    for (const CodePointRange& range : set.ranges()) {
      const bool over_surrogates = range.first < 0xD800 && range.last > 0xDFFF;
      points += static_cast<std::int64_t>(range.last - range.first) + 1 - (over_surrogates ? 0x800 : 0);
    }
    std::int64_t choices = 0;
    for (const ByteSequence& sequence : utf8_sequences(set)) {
      std::int64_t product = 1;
      for (int place = 0; place < sequence.length; ++place) {
        product *= sequence.places[static_cast<std::size_t>(place)].last -
                   sequence.places[static_cast<std::size_t>(place)].first + 1;
      }
      choices += product;
    }
    EXPECT_EQ(choices, points);
  }
}

TEST(CodePoints, OfAClassAreThoseThatUnicodeNames) {
  const CodePoints& digits = code_points_of_class("\\p{Nd}");
  EXPECT_EQ(digits.ranges().front(), (CodePointRange{U'0', U'9'}));
  EXPECT_GT(digits.ranges().size(), 50U);
  EXPECT_EQ(digits.others().others().ranges(), digits.ranges());
  EXPECT_EQ(&code_points_of_class("\\p{Nd}"), &digits) << "found once";
}

TEST(ByteDfa, FollowsPatternsWhoseWholeAutomatonWouldBeTooLarge) {
  // What index builders take seconds for, or gigabytes: a state is made when it is met.
  const auto start = std::chrono::steady_clock::now();
  for (const auto& [pattern, text] : std::vector<std::pair<std::string, std::string>>{
           {"[^\\n]{0,500}END", std::string(400, 'x') + "END"},
           {"(a|aa){200}", std::string(300, 'a')},
           {"(.*a.{20})", std::string(5000, 'b') + "a" + std::string(20, 'c')},
           {"(a|b)*a(a|b){20}", std::string(3000, 'b') + "a" + std::string(20, 'b')},
           {"((a{0,100}){0,100}b){1,5}", std::string(90, 'a') + "b"}}) {
    EXPECT_TRUE(matches(pattern, text)) << pattern;
    EXPECT_FALSE(matches(pattern, text + "\n")) << pattern;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ByteDfa, GoesOnFromAStateThatWasHeldWhileOthersWereForgotten) {
  ByteDfa dfa(compile_pattern("(.*a.{12})x"), 20'000);
  const auto held = dfa.after(dfa.start(), "bbbba");
  std::uint32_t random = 7;
  auto far = dfa.start();
  for (int letter = 0; letter < 20'000 && far != nullptr; ++letter) {
    random = random * 1664525 + 1013904223;
    far = dfa.after(far, (random >> 16 & 1) != 0 ? "a" : "b");
  }
  ASSERT_NE(far, nullptr);
  EXPECT_GT(dfa.states_made(), 1000) << "some 50 fit";
  const auto end = dfa.after(held, "bbbbbbbbbbbbx");
  ASSERT_NE(end, nullptr);
  EXPECT_TRUE(end->accepting());
  EXPECT_FALSE(dfa.after(held, "bbbbbbbbbbbx")->accepting()) << "one letter is missing";
}

}  // namespace
}  // namespace decodelab
