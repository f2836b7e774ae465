// Feeds damaged patterns to their parser and what it makes to texts: each is compiled or refused.
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "engine/masks/byte_dfa.h"
#include "engine/masks/token_mask.h"
#include "tests/engine/checkpoint/mutator.h"

namespace decodelab {
namespace {

TEST(Fuzz, PatternsAreCompiledOrRefusedAndFollowAnyText) {
  constexpr std::array<std::string_view, 8> kPatterns{"(a|bc?)*[^d-f]{2,40}",
                                                      R"(\{"name": "[^"\\\x00-\x1f]{1,20}", "age": [0-9]{1,3}\})",
                                                      "(?:The|A) [a-z ]+\\.|é+[ -~]*",
                                                      R"(-?(0|[1-9][0-9]*)(\.[0-9]{1,6})?([eE][+-]?[0-9]+)?)",
                                                      "[^\\n]{0,100}END",
                                                      "(?<name>[αβγ]{2,5})(?P<other>😀+)",
                                                      "\\d\\D\\s\\S\\p{Lu}\\x{1F600}\\u00e9",
                                                      "((a{0,3}b*)+|.?c){1,3}$"};
  const auto vocabulary = std::make_shared<const MaskVocabulary>(
      std::vector<std::string>{"a", "b", "{\"name", "12", "é", "\xF0\x9F", "\x98\x80", "END", "The ", ".", "\n"},
      std::vector<std::int64_t>{});
  MaskBits bits(std::ssize(vocabulary->bytes()));
  fuzz("", [&](const std::string&, Mutator& mutator) {
    const std::string pattern = mutator.mutate(std::string(kPatterns[mutator.below(kPatterns.size())]));
    const auto mask = make_scan_masks({.pattern = pattern, .vocabulary = vocabulary});
    TokenMask::State state = mask->start();
    for (int step = 0; step < 6 && state != nullptr; ++step) {
      mask->find_allowed(*state, bits);
      const auto id = static_cast<std::int64_t>(mutator.below(vocabulary->bytes().size()));
      const TokenMask::State next = mask->after(state, id);
      ASSERT_EQ(next != nullptr, bits.allows(id)) << pattern;
      state = next;
    }
  });
}

}  // namespace
}  // namespace decodelab
