// The words of a fill.
#include "bench/plan/cell_fill.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "engine/engine.h"

namespace decodelab {
namespace {

TEST(CellFill, IsRandomOrGenerated) {
  EXPECT_TRUE(cell_fill_from_string("generated").generated);
  EXPECT_FALSE(cell_fill_from_string("random").generated);
  EXPECT_EQ(cell_fill_from_string("random").decoder_tokens, kHeldByDecoder);
  EXPECT_EQ(kind_of_fill(cell_fill_from_string("generated")), "generated");
}

TEST(CellFill, NamesTheTokensOfADecoderBesideAnEncoder) {
  EXPECT_EQ(cell_fill_from_string("random:32").decoder_tokens, 32);
  EXPECT_EQ(kind_of_fill(cell_fill_from_string("random:32")), "random");
}

TEST(CellFill, RefusesOtherWords) {
  for (const char* const text : {"", "zeros", "random:", "random:0", "random:-1", "random:8x", "generated:3"}) {
    EXPECT_THROW(cell_fill_from_string(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace decodelab
