// Steps are the times between tokens of all streams, and no prompt is sent twice.
#include "bench/measure/serving/served_steps.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "bench/measure/worker.h"

namespace decodelab {
namespace {

StreamRound round_of(const std::vector<std::vector<std::int64_t>>& token_ns) {
  StreamRound round{.start_ns = 100};
  for (const std::vector<std::int64_t>& times : token_ns) {
    round.streams.push_back({.token_ns = times});
  }
  return round;
}

TEST(ServedSteps, OfOneStreamAreTheGapsBetweenItsTokens) {
  const StreamRound round = round_of({{150, 160, 175, 180}});
  EXPECT_EQ(first_token_ns(round), 50);
  EXPECT_EQ(whole_ns(round), 80);
  const ServedSteps steps = steps_between_tokens(round, 64);
  EXPECT_EQ(steps.samples_ns, (std::vector<std::int64_t>{10, 15, 5}));
  EXPECT_EQ(steps.wall_ns, 30);
  EXPECT_EQ(steps_between_tokens(round, 2).samples_ns.size(), 2U);
}

TEST(ServedSteps, BeginWithTheFirstTokenOfTheLastStreamAndEndWithTheLastTokenOfAStep) {
  // The first stream says two tokens while the second one's prompt is read.
  const StreamRound round = round_of({{120, 130, 140, 152, 163, 170}, {145, 150, 160, 172}});
  EXPECT_EQ(first_token_ns(round), 45);
  const ServedSteps steps = steps_between_tokens(round, 64);
  EXPECT_EQ(steps.samples_ns, (std::vector<std::int64_t>{7, 11, 9})) << "to 152, 163 and 172";
  EXPECT_EQ(steps.wall_ns, 27);
}

TEST(ServedSteps, AreNoneWhereAStreamHasEndedBeforeAnotherBegins) {
  EXPECT_TRUE(steps_between_tokens(round_of({{110, 120}, {130, 140}}), 8).samples_ns.empty());
  EXPECT_EQ(steps_between_tokens(round_of({{110, 120}, {130, 140}}), 8).wall_ns, 0);
}

TEST(ServedSteps, OfABatchThatServesRequestsAreMeansOverThem) {
  const StreamRound round = round_of({{110, 120, 130}, {140, 170}, {180}});
  const auto sample = [&](const std::vector<std::int64_t>& after_ns, const char* scope) {
    return batching_sample_ns(request_times(round, after_ns), whole_ns(round), batching_scope_from_string(scope));
  };
  EXPECT_EQ(sample({}, "served"), 80);
  EXPECT_EQ(sample({}, "first-token"), (10 + 40 + 80) / 3);
  EXPECT_EQ(sample({}, "between-tokens"), (10 + 10 + 30) / 3);
  EXPECT_EQ(sample({0, 20, 50}, "first-token"), (10 + 20 + 30) / 3) << "from when a request came";
  EXPECT_EQ(sample({}, "good-ttft0.00004"), 80 / 2) << "two have their first token within 40 ns";
  EXPECT_EQ(sample({0, 20, 50}, "good-ttft0.00004"), 80 / 3);
  EXPECT_EQ(sample({}, "good-tpot0.00001"), 80 / 2) << "one of one token is as fast as can be";
  EXPECT_EQ(sample({}, "good-ttft0.00004-tpot0.00001"), 80);
  EXPECT_EQ(sample({}, "good-ttft0.000009"), 0);
}

TEST(ServedSteps, OfNoGoodRequestAreARowThatFailed) {
  CellRecord cell;
  cell.phase = Phase::batching;
  cell.scope = "good-ttft200-tpot50-at-2.5";
  check_sample(cell, 1);
  try {
    check_sample(cell, 0);
    FAIL() << "it has no time";
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, RowStatus::failed);
    EXPECT_NE(std::string(error.what()).find("within TTFT 200 ms, TPOT 50 ms"), std::string::npos) << error.what();
  }
}

TEST(FreshPrompt, HasTheSameIdsInAnotherOrderEachTime) {
  const std::vector<std::int64_t> prompt{10, 11, 12, 13, 14, 15, 16, 17, 18};
  EXPECT_EQ(fresh_prompt(prompt, 0), prompt);
  EXPECT_EQ(fresh_prompt(prompt, 2).front(), 12);
  std::set<std::vector<std::int64_t>> seen;
  for (std::int64_t number = 0; number < 9 * 6; ++number) {  // 6 numbers below 9 share no divisor with it
    std::vector<std::int64_t> fresh = fresh_prompt(prompt, number);
    seen.insert(fresh);
    std::ranges::sort(fresh);
    EXPECT_EQ(fresh, prompt);
  }
  EXPECT_EQ(seen.size(), 54U);
  EXPECT_EQ(fresh_prompt(std::vector<std::int64_t>{7}, 1'000'000'007), std::vector<std::int64_t>{7});
  EXPECT_TRUE(fresh_prompt({}, 3).empty());
}

}  // namespace
}  // namespace decodelab
