// Tests of the translation from Oniguruma's patterns to PCRE2's, and of matching hostile patterns and texts.
#include "engine/checkpoint/regex.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

std::vector<std::string> parts(const char* pattern, std::string_view text) {
  std::vector<std::string> result;
  for (const TextSpan& span : Regex(pattern).split(text)) {
    result.push_back((span.matched ? "+" : "-") + std::string(text.substr(span.begin, span.end - span.begin)));
  }
  return result;
}

using Parts = std::vector<std::string>;

TEST(Regex, CoversTheTextWithMatchesAndWhatLiesBetween) {
  EXPECT_EQ(parts(R"(\d+)", "ab12c3"), (Parts{"-ab", "+12", "-c", "+3"}));
  EXPECT_EQ(parts("x", ""), Parts{});
  EXPECT_EQ(parts("x*", "axxb"), (Parts{"+", "-a", "+xx", "-b", "+"}));
}

TEST(Regex, CountsTheSpacesOfUnicode) {
  for (const char* space : {" ", "\t", "\n", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680", "\u2000", "\u200a",
                            "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}) {
    EXPECT_EQ(parts(R"(\s)", space), Parts{std::string("+") + space});
    EXPECT_EQ(parts(R"([^\s])", space), Parts{std::string("-") + space});
    EXPECT_EQ(parts(R"(\S)", space), Parts{std::string("-") + space});
  }
  for (const char* other : {"a", "\u180e", "\u200b", "\ufeff"}) {
    EXPECT_EQ(parts(R"(\s)", other), Parts{std::string("-") + other});
    EXPECT_EQ(parts(R"(\S)", other), Parts{std::string("+") + other});
  }
  EXPECT_EQ(parts(R"([\s-]+)", "a - b"), (Parts{"-a", "+ - ", "-b"}));
}

TEST(Regex, LetsBytesThatAreNoUtf8MatchNothing) {
  EXPECT_EQ(parts(R"([^x]+)", "a\xff\x80z"), (Parts{"+a", "-\xff\x80", "+z"}));
}

TEST(Regex, RefusesWhatTheLibrariesUnderstandDifferently) {
  for (const char* pattern : {R"(\w)",   R"(\bx)",  R"(\h)",    R"(\K)",   R"(\1)",  "^a",          "a$",     "(?m:a)",
                              "(?i)a",   "(?<n>a)", "(?P<n>a)", "(*UCP)a", "[a[b]]", "[[:alpha:]]", "[a&&b]", R"([\S])",
                              "a{1,2}+", "a\\",     R"(\p{L)",  R"(\xff)", R"(\pL)", "[]a]"}) {
    EXPECT_NE(refusal([&] { Regex regex(pattern); }), "") << pattern;
  }
  for (const char* pattern : {R"([^\r\n\p{L}\p{N}]?\p{L}+)", "(?i:'s|'t)", R"(\s+(?!\S))", "(?<=a)b", "(?>a+)b",
                              "a++b?+", R"([\]\[^$])", R"(\p{Han}+)", R"(\x{4e00})"}) {
    EXPECT_EQ(refusal([&] { Regex regex(pattern); }), "") << pattern;
  }
}

TEST(Regex, RefusesBrokenAndEndlessPatterns) {
  EXPECT_NE(refusal([] { Regex regex("(a"); }), "");
  EXPECT_NE(refusal([] { Regex regex("\xff"); }), "");
  EXPECT_NE(refusal([] { Regex regex(R"(\p{NoSuchThing})"); }), "");
  EXPECT_NE(refusal([] { Regex regex(std::string(30'000, 'a')); }), "");
  const std::string text(60, 'a');
  EXPECT_NE(refusal([&] { Regex(R"((?:a|a)*(?:a|a)*(?:a|a)*[bc])").split(text); }), "");
}

TEST(Regex, GetsMoreStackForLongMatches) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) {
    text += i % 3 == 0 ? "ab" : "ba";
  }
  EXPECT_EQ(Regex("(?:ab|ba)*").split(text).size(), 1u);
}

}  // namespace
}  // namespace decodelab
