// The words of phase batching.
#include "reports/statistics/batching_scope.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(BatchingScope, IsReadAsItIsWritten) {
  for (const char* word : {"served", "first-token", "between-tokens", "served-at-2.5", "first-token-at-100",
                           "good-ttft200", "good-tpot50.5", "good-ttft200-tpot50-at-2.5"}) {
    EXPECT_EQ(to_string(batching_scope_from_string(word)), word);
  }
  EXPECT_EQ(batching_scope_from_string("served-at-2.5").request_rate, 2.5);
  const BatchingScope good = batching_scope_from_string("good-ttft200-tpot50-at-2.5");
  EXPECT_EQ(good.limits, (RequestLimits{.ttft_ms = 200, .tpot_ms = 50}));
  EXPECT_EQ(good.request_rate, 2.5);
  EXPECT_EQ(limits_words(good.limits), "TTFT 200 ms, TPOT 50 ms");
  EXPECT_EQ(limits_words({.tpot_ms = 50}), "TPOT 50 ms");
  EXPECT_EQ(batching_scope_from_string("between-tokens").sample, BatchingScope::Sample::between_tokens);
}

TEST(BatchingScope, RefusesOtherWords) {
  for (const char* word :
       {"", "step", "served-", "served-at-", "served-at-0", "served-at--1", "served-at-inf", "served-at-2x", "first",
        "good", "good-at-2", "good-ttft0", "good-tpot50-ttft200", "good-ttft200-", "served-ttft200"}) {
    EXPECT_THROW(batching_scope_from_string(word), std::invalid_argument) << word;
  }
}

}  // namespace
}  // namespace decodelab
