// Whatever comes from outside ends up as one short line of valid text.
#include "base/text.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(OutsideText, KeepsWhatIsHarmless) {
  for (const char* text :
       {"", "bigcode,+fused-layer-norm", "na\xc3\xafve \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x9a\x80", "op.aten::cat"}) {
    EXPECT_EQ(one_line(text), text);
  }
}

TEST(OutsideText, TurnsControlCharactersAndDirectionsIntoSpaces) {
  EXPECT_EQ(one_line("a\n\r\t b\x1b[31mc\x7f"), "a b [31mc");
  EXPECT_EQ(one_line("  padded\n"), "padded");
  EXPECT_EQ(one_line("evil\xe2\x80\xaetxt.exe"), "evil txt.exe") << "U+202E";
  EXPECT_EQ(one_line(std::string_view("nul\0byte", 8)), "nul byte");
  EXPECT_EQ(one_line("c1\xc2\x9b!"), "c1 !");
  EXPECT_EQ(one_line("\xef\xbf\xbf"), "") << "U+FFFF is no character of XML";
}

TEST(OutsideText, ReplacesBytesThatAreNoUtf8) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(one_line("a\xff"
                     "b"),
            "a" + mark + "b");
  EXPECT_EQ(one_line("\xc0\xaf"), mark + mark) << "overlong";
  EXPECT_EQ(one_line("\xed\xa0\x80"), mark + mark + mark) << "a surrogate";
  EXPECT_EQ(one_line("cut \xe6\xa8"), "cut " + mark + mark);
}

TEST(Shortened, KeepsCharactersWholeAndSaysThatItCut) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...");
  EXPECT_EQ(shortened("abcdef", 2), "ab") << "no room for a letter beside the dots";
}

TEST(OutsideText, CutsWhatIsTooLongBetweenCharacters) {
  EXPECT_EQ(one_line("abcdef", 3), "abc\xe2\x80\xa6");
  EXPECT_EQ(one_line("abc", 3), "abc");
  EXPECT_EQ(one_line("\xc3\xa9\xc3\xa9\xc3\xa9", 2), "\xc3\xa9\xc3\xa9\xe2\x80\xa6");
  EXPECT_EQ(display_width(one_line(std::string(10'000, 'x'))), kOutsideText + 1);
}

TEST(OutsideText, TakesTheMeaningFromTheRunnersCommands) {
  EXPECT_EQ(one_line("a##[error]b"), "a## [error]b");
  EXPECT_EQ(one_line("a###[error]"), "a### [error]");
  EXPECT_EQ(folded("::error::x", 80), "| ::error::x");
  EXPECT_EQ(folded("word ::error::x", 8), "word\n| ::erro\nr::x");
  EXPECT_EQ(folded("aten::cat", 80), "aten::cat");
}

TEST(OutsideText, FoldsWordsThatAreLongerThanALine) {
  EXPECT_EQ(folded("ab cdefgh i", 3), "ab\ncde\nfgh\ni");
  EXPECT_EQ(folded("", 10), "");
}

TEST(Trimmed, LosesWhiteSpaceAtItsEndsAlone) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

}  // namespace
}  // namespace decodelab
