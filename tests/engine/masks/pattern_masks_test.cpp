// Masks that sessions share.
#include "engine/masks/pattern_masks.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

std::shared_ptr<const MaskVocabulary> two_letters() {
  return std::make_shared<const MaskVocabulary>(std::vector<std::string>{"a", "b"}, std::vector<std::int64_t>{});
}

TEST(PatternMasks, AreMadeOnceAsLongAsSomebodyHoldsThem) {
  int made = 0;
  PatternMasks masks(
      [&made](const TokenMaskOptions& options) {
        ++made;
        return make_scan_masks(options);
      },
      two_letters());
  std::shared_ptr<TokenMask> first = masks.of("a*");
  EXPECT_EQ(masks.of("a*"), first);
  EXPECT_NE(masks.of("b*"), first);
  EXPECT_EQ(made, 2);
  first.reset();
  EXPECT_NE(masks.of("a*"), nullptr);
  EXPECT_EQ(made, 3) << "nobody held it, so that it was forgotten";
}

TEST(PatternMasks, RefuseAPatternThatCannotBeFollowed) {
  PatternMasks masks(make_scan_masks, two_letters());
  EXPECT_THROW(masks.of("("), std::invalid_argument);
  PatternMasks without(make_scan_masks, nullptr);
  EXPECT_THROW(without.of("a"), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
