// Which tokens may come: rules of rows, and the reference beside texts that are tried one by one.
#include "engine/masks/token_mask.h"

#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "engine/masks/token_rules.h"

namespace decodelab {
namespace {

std::shared_ptr<const MaskVocabulary> vocabulary_of(std::vector<std::string> bytes, std::vector<std::int64_t> eos) {
  return std::make_shared<const MaskVocabulary>(std::move(bytes), std::move(eos));
}

RowRules rules_of(const TokenRules& rules, const std::shared_ptr<const MaskVocabulary>& vocabulary) {
  std::shared_ptr<TokenMask> mask;
  if (!rules.regex.empty()) {
    mask = make_scan_masks({.pattern = rules.regex, .vocabulary = vocabulary});
  }
  return {rules, mask, vocabulary};
}

std::vector<std::int64_t> allowed(const RowRules& rules, std::int64_t width) {
  MaskBits bits(width);
  rules.find_allowed(bits);
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 0; id < width; ++id) {
    if (bits.allows(id)) {
      ids.push_back(id);
    }
  }
  return ids;
}

using Ids = std::vector<std::int64_t>;

TEST(MaskVocabulary, IsATreeOfAllTokensWithBytesInOrder) {
  const MaskVocabulary vocabulary({"b", "", "ab", "a", "abc", "b", "</s>", "\""}, {6});
  const MaskVocabulary::Tree& tree = vocabulary.plain();
  EXPECT_EQ(tree.tokens, (std::vector<std::uint32_t>{3, 2, 4, 0, 5})) << "no token without bytes, no end";
  ASSERT_EQ(tree.nodes.size(), 4U);
  EXPECT_EQ(tree.nodes[0].end, 3U);
  EXPECT_EQ(tree.nodes[3].token_count, 2U) << "two ids with the same bytes";
  EXPECT_EQ(vocabulary.others().tokens, (std::vector<std::uint32_t>{7})) << "a quotation mark is not plain";
  EXPECT_EQ(vocabulary.depth(), 3U);
  EXPECT_THROW(MaskVocabulary({}, {-1}), std::invalid_argument);
}

TEST(TokenMask, AllowsAllPlainTokensAtOnceOnlyWhereEveryTextOfThemMayCome) {
  ByteDfa any(compile_pattern("[^\n]{0,40}END"));
  const std::vector<std::uint8_t>& plain = MaskVocabulary::plain_bytes();
  EXPECT_TRUE(any.survives(*any.start(), plain, 12));
  EXPECT_TRUE(any.survives(*any.after(any.start(), std::string(28, 'x')), plain, 12));
  EXPECT_FALSE(any.survives(*any.after(any.start(), std::string(32, 'x')), plain, 12)) << "8 more, then the end";
  ByteDfa string(compile_pattern("\"[^\"\\\\]*\""));
  EXPECT_FALSE(string.survives(*string.start(), plain, 12));
  EXPECT_TRUE(string.survives(*string.after(string.start(), "\"a"), plain, 12));
  ByteDfa letters(compile_pattern("[a-z]*"));
  EXPECT_FALSE(letters.survives(*letters.start(), plain, 12));
}

TEST(RowRules, LetAPatternGoOnTokenByTokenAndEndWhereItMatches) {
  const auto vocabulary = vocabulary_of({"a", "b", "ab", "ba", "c", ""}, {5});
  RowRules row = rules_of({.regex = "(ab)+"}, vocabulary);
  EXPECT_EQ(allowed(row, 8), (Ids{0, 2})) << "ids behind the vocabulary never come";
  row.take(0, 10);
  EXPECT_EQ(allowed(row, 8), (Ids{1, 3}));
  row.take(1, 11);
  EXPECT_EQ(allowed(row, 8), (Ids{0, 2, 5}));
  row.take(4, 12);
  EXPECT_TRUE(allowed(row, 8).empty()) << "a forced token that does not match";
  row.truncate(11);
  EXPECT_EQ(allowed(row, 8), (Ids{1, 3}));
  row.take(3, 11);
  row.take(1, 12);
  EXPECT_EQ(allowed(row, 8), (Ids{0, 2, 5}));
  row.take(3, 11);
  EXPECT_EQ(allowed(row, 8), (Ids{1, 3})) << "in place of what was noted there and later";
}

TEST(RowRules, CombineAPatternWithEndsAndListsOfIds) {
  const auto vocabulary = vocabulary_of({"a", "b", "ab", ""}, {3});
  EXPECT_EQ(allowed(rules_of({.forbid_eos = true}, vocabulary), 4), (Ids{0, 1, 2}));
  EXPECT_EQ(allowed(rules_of({.allowed_ids = {1, 3}}, vocabulary), 4), (Ids{1, 3}));
  EXPECT_EQ(allowed(rules_of({.regex = "a*", .allowed_ids = {1, 2}}, vocabulary), 4), Ids{});
  RowRules row = rules_of({.regex = "a*", .min_tokens = 2}, vocabulary);
  EXPECT_EQ(allowed(row, 4), Ids{0});
  row.take(0, 0);
  EXPECT_EQ(allowed(row, 4), Ids{0});
  row.take(0, 1);
  EXPECT_EQ(allowed(row, 4), (Ids{0, 3}));
  RowRules copy = row;
  copy.take(0, 2);
  EXPECT_EQ(allowed(row, 4), (Ids{0, 3})) << "a copy goes on by itself";
  EXPECT_THROW(check_rules({.allowed_ids = {4}}, 4), std::invalid_argument);
  EXPECT_THROW(check_rules({.min_tokens = -1}, 4), std::invalid_argument);
}

TEST(MaskBits, CountAndKeepWhatBothAllow) {
  MaskBits bits(70);
  bits.allow_all();
  EXPECT_EQ(bits.count(), 70);
  MaskBits narrow(40);
  narrow.allow_all_of({0x80000001, 0xFFFFFFFF, 1});
  EXPECT_EQ(narrow.count(), 2 + 8) << "what lies behind the last token is left out";
  bits.forbid(69);
  bits.allow(700);
  MaskBits other(70);
  other.allow(3);
  other.allow(69);
  bits.keep_only(other);
  EXPECT_EQ(bits.count(), 1);
  EXPECT_TRUE(bits.allows(3));
}

}  // namespace
}  // namespace decodelab
