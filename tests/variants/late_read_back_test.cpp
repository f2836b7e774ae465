// Tokens that are read one step late are the same tokens, and rows end where they should.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_model;

constexpr const char* kLate = "causal,+late-read-back,+vectorized-choice";

std::vector<Completion> complete(const std::string& arm, GenerationRequest request) {
  request.prompts = ragged_prompts();
  return generate(engine_for(arm, small_model(small_config())), request);
}

void expect_same(const GenerationRequest& request) {
  const std::vector<Completion> expected = complete("causal", request);
  const std::vector<Completion> got = complete(kLate, request);
  for (std::size_t row = 0; row < expected.size(); ++row) {
    EXPECT_EQ(got[row].token_ids, expected[row].token_ids) << "row " << row;
    EXPECT_EQ(got[row].finish_reason, expected[row].finish_reason) << "row " << row;
    EXPECT_TRUE(
        std::ranges::equal(got[row].details, expected[row].details, {}, &TokenDetails::rank, &TokenDetails::rank))
        << "row " << row;
  }
}

TEST(LateReadBack, GivesTheTokensOfTheReferenceHoweverRowsEnd) {
  expect_same({.max_tokens = 1, .details = {}});
  expect_same({.max_tokens = 12, .details = {}});
  expect_same({.max_tokens = 12, .details = {{.generated = {.rank = true}}}});
  const std::int64_t eos = complete("causal", {.max_tokens = 12, .details = {}})[1].token_ids[3];
  expect_same({.max_tokens = 12, .eos_token_ids = {eos}, .details = {}});
}

TEST(LateReadBack, GivesTheTokensOfSeededRowsToo) {
  expect_same({.max_tokens = 12,
               .details = {},
               .sampling = {SamplingParameters{.sample = true, .temperature = 0.9F, .seed = 7}}});
}

}  // namespace
}  // namespace decodelab
