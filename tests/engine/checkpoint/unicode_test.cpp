// Tests of normal forms, grapheme clusters, spaces, and tables of replaced characters.
#include "engine/checkpoint/unicode.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/precompiled_map.h"
#include "tests/engine/checkpoint/precompiled_table.h"

namespace decodelab {
namespace {

using testing::precompiled_table;
using testing::to_base64;

TEST(Unicode, HasTheFourNormalForms) {
  EXPECT_EQ(in_normal_form("e\u0301 \ufb01", NormalForm::nfc), "\u00e9 \ufb01");
  EXPECT_EQ(in_normal_form("\u00e9 \ufb01", NormalForm::nfd), "e\u0301 \ufb01");
  EXPECT_EQ(in_normal_form("e\u0301 \ufb01", NormalForm::nfkc), "\u00e9 fi");
  EXPECT_EQ(in_normal_form("\u00e9 \ufb01", NormalForm::nfkd), "e\u0301 fi");
  EXPECT_EQ(in_normal_form("", NormalForm::nfc), "");
}

TEST(Unicode, KeepsBytesThatAreNoUtf8WhenItNormalizes) {
  EXPECT_EQ(in_normal_form("e\u0301\xff\xc3 e\u0301\xe2\x82", NormalForm::nfc), "\u00e9\xff\xc3 \u00e9\xe2\x82");
}

TEST(Unicode, CutsATextIntoGraphemeClusters) {
  const auto texts = [](const std::string& text) {
    std::vector<std::string> found;
    for (const std::string_view cluster : graphemes(text)) {
      found.emplace_back(cluster);
    }
    return found;
  };
  EXPECT_EQ(texts("ae\u0301\r\nx"), (std::vector<std::string>{"a", "e\u0301", "\r\n", "x"}));
  EXPECT_EQ(texts("\U0001F1E9\U0001F1EA\U0001F1EB"), (std::vector<std::string>{"\U0001F1E9\U0001F1EA", "\U0001F1EB"}));
  EXPECT_EQ(texts("a\xff\u0301"), (std::vector<std::string>{"a", "\xff", "\u0301"}));
  EXPECT_TRUE(texts("").empty());
}

TEST(Unicode, FindsSpacesAtBothEndsAndNotWithin) {
  EXPECT_EQ(without_spaces("\u3000 a b\u2028 ", true, true), "a b");
  EXPECT_EQ(without_spaces(" a ", true, false), "a ");
  EXPECT_EQ(without_spaces(" a ", false, true), " a");
  EXPECT_EQ(without_spaces(" a ", false, false), " a ");
  EXPECT_EQ(without_spaces(" \t\n", false, true), "");
  EXPECT_EQ(without_spaces(" \t\n", false, false), " \t\n");
  EXPECT_EQ(without_spaces("\u200b", true, true), "\u200b") << "a space of no width is no white space";
}

TEST(PrecompiledMap, ReplacesCharactersAndShortClustersByTheShortestEntry) {
  const PrecompiledMap map(precompiled_table({{"\u00c4", "A"}, {"e", "E"}, {"\ufb01", "fi"}, {"x", ""}}));
  EXPECT_EQ(map.replaced("\u00c4b\ufb01xe"), "AbfiE");
  EXPECT_EQ(map.replaced("e\u0301"), "E") << "a cluster of three bytes is replaced whole";
  EXPECT_EQ(map.replaced("e\u0301\u0301\u0301"), "E\u0301\u0301\u0301") << "one of seven bytes is not";
  EXPECT_EQ(map.replaced("\xff"), "\xff");
}

TEST(PrecompiledMap, RefusesTablesWhoseSizesDoNotMatch) {
  const std::string table = precompiled_table({{"a", "b"}});
  for (const std::string& broken : {std::string(), std::string("\x04"), table.substr(0, 100), std::string(4, '\0'),
                                    std::string("\x03\x00\x00\x00xxx", 7)}) {
    EXPECT_THROW(PrecompiledMap{broken}, std::invalid_argument);
  }
}

TEST(PrecompiledMap, ReadsNothingBeyondATableWhoseTrieLeadsOutOfIt) {
  std::string table = precompiled_table({{"a", "b"}});
  for (std::size_t at = 4; at < table.size(); ++at) {
    table[at] = '\xff';
  }
  EXPECT_EQ(PrecompiledMap(table).replaced("aaa"), "aaa");
}

TEST(Base64, ReadsWhatWasWrittenAndRefusesTheRest) {
  for (const std::string bytes : {"", "a", "ab", "abc", "\xff\x80\x01z"}) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
  for (const char* text : {"a", "ab=", "a===", "ab c", "=abc", "ab=c"}) {
    EXPECT_FALSE(from_base64(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace decodelab
