// The words of phase batching.
#include "reports/statistics/batching_scope.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(BatchingScope, IsReadAsItIsWritten) {
  for (const char* word : {"served", "first-token", "between-tokens", "served-at-2.5", "first-token-at-100"}) {
    EXPECT_EQ(to_string(batching_scope_from_string(word)), word);
  }
  EXPECT_EQ(batching_scope_from_string("served-at-2.5").request_rate, 2.5);
  EXPECT_EQ(batching_scope_from_string("between-tokens").sample, BatchingScope::Sample::between_tokens);
}

TEST(BatchingScope, RefusesOtherWords) {
  for (const char* word :
       {"", "step", "served-", "served-at-", "served-at-0", "served-at--1", "served-at-inf", "served-at-2x", "first"}) {
    EXPECT_THROW(batching_scope_from_string(word), std::invalid_argument) << word;
  }
}

}  // namespace
}  // namespace decodelab
