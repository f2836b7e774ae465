// The requests of a cell of phase batching.
#include "bench/plan/batch_work.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

const CellRecord kCell{.phase = Phase::batching, .batch = 50, .length = 20};

TEST(PlannedRequests, HaveLengthsAboutThoseOfTheCellAndComeOneAfterAnother) {
  const std::vector<PlannedRequest> requests = planned_requests(kCell, 3, 8);
  ASSERT_EQ(std::ssize(requests), 4 * 50);
  std::set<std::int64_t> prompts;
  std::set<std::int64_t> completions;
  double new_tokens = 0;
  for (const PlannedRequest& request : requests) {
    prompts.insert(request.prompt_tokens);
    completions.insert(request.new_tokens);
    new_tokens += static_cast<double>(request.new_tokens);
  }
  EXPECT_EQ(*prompts.begin(), 10);
  EXPECT_EQ(*prompts.rbegin(), longest_prompt(20));
  EXPECT_EQ(prompts.size(), 21U);
  EXPECT_EQ(*completions.begin(), 2);
  EXPECT_EQ(*completions.rbegin(), longest_completion(8));
  EXPECT_NEAR(new_tokens / 200, 8, 1);
  EXPECT_EQ(requests.front().arrival, 0);
  EXPECT_TRUE(std::ranges::is_sorted(requests, {}, &PlannedRequest::arrival));
  EXPECT_NEAR(requests.back().arrival / 199, 1, 0.25) << "the mean gap is 1";
}

TEST(PlannedRequests, AreTheSameForTheSameSeedOnly) {
  const auto arrivals = [](std::uint64_t seed) {
    std::vector<double> all;
    for (const PlannedRequest& request : planned_requests(kCell, seed, 8)) {
      all.push_back(request.arrival);
    }
    return all;
  };
  EXPECT_EQ(arrivals(1), arrivals(1));
  EXPECT_NE(arrivals(1), arrivals(2));
}

TEST(PlannedRequests, MayBeAsShortAsOneToken) {
  for (const PlannedRequest& request : planned_requests({.phase = Phase::batching, .batch = 2, .length = 1}, 1, 1)) {
    EXPECT_EQ(request.prompt_tokens, 1);
    EXPECT_EQ(request.new_tokens, 1);
  }
}

TEST(BatchWork, HasAPromptOfTheRightLengthForEachRequest) {
  const BatchWork work = batch_work(kCell, 3, 8, {}, {}, 97);
  ASSERT_EQ(work.prompts.size(), work.planned.size());
  std::int64_t total = 0;
  for (std::size_t request = 0; request < work.prompts.size(); ++request) {
    EXPECT_EQ(std::ssize(work.prompts[request]), work.planned[request].prompt_tokens);
    EXPECT_LT(*std::ranges::max_element(work.prompts[request]), 97);
    total += work.planned[request].new_tokens;
  }
  EXPECT_EQ(work.new_tokens(), total);
  EXPECT_EQ(batch_work(kCell, 3, 8, {}, {}, 97).prompts, work.prompts) << "the same for every arm";
}

}  // namespace
}  // namespace decodelab
