// How far is guessed, on rounds whose prices and outcomes this file makes up.
#include "engine/sequences/draft_length.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/variants/arms.h"

namespace decodelab {
namespace {

std::unique_ptr<DraftLength> length_of(const std::string& variant, std::int64_t rows = 1) {
  return bind_arm(parse_arm("causal,+" + variant), reference_plan()).draft_length.factory()(rows);
}

constexpr double kPlainNs = 1e6;
constexpr std::int64_t kMost = 16;

struct Spent {
  double ns_of_token = 0;
  double mean_length = 0;
};

/// Goes on for `rounds` rounds of one row, in which `right(guess)` says whether the guess of that number is right and a
/// guess costs `guess_share` of a plain step.
Spent run_of(DraftLength& length, int rounds, double guess_share, const std::function<bool(int)>& right) {
  double ns = 0;
  double tokens = 0;
  double guesses = 0;
  int guess = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t most[] = {kMost};
    const std::int64_t wanted = length.wanted(most)[0];
    EXPECT_LE(wanted, kMost);
    std::int64_t accepted = 0;
    while (accepted < wanted && right(guess++)) {
      ++accepted;
    }
    const double of_round = kPlainNs * (1 + guess_share * static_cast<double>(wanted));
    const DraftLength::Outcome outcome[] = {{.proposed = wanted, .accepted = accepted}};
    length.note(outcome, 0, std::llround(of_round));
    ns += of_round;
    tokens += static_cast<double>(1 + accepted);
    guesses += static_cast<double>(wanted);
  }
  return {.ns_of_token = ns / tokens, .mean_length = guesses / rounds};
}

/// Right in four of five guesses.
bool mostly(int guess) { return guess % 5 != 0; }

TEST(GoodputLength, CostsLessThanTwoPercentWhereNoGuessIsRight) {
  for (const double share : {0.02, 0.1, 0.5}) {
    const auto length = length_of("goodput-length");
    const Spent run = run_of(*length, 400, share, [](int) { return false; });
    EXPECT_LT(run.ns_of_token, 1.02 * kPlainNs) << share;
    EXPECT_GT(run.mean_length, 0) << "it looks again once in a while";
  }
}

TEST(GoodputLength, GuessesAsFarAsItMayWhereAllIsRightAndCheap) {
  const auto length = length_of("goodput-length");
  const Spent run = run_of(*length, 200, 0.02, [](int) { return true; });
  EXPECT_GT(run.mean_length, 14);
  EXPECT_LT(run.ns_of_token, 0.1 * kPlainNs);
}

TEST(GoodputLength, IsNearTheBestLengthInBetween) {
  for (const double share : {0.03, 0.1, 0.3}) {
    double best = kPlainNs;
    double expected = 1;
    double tokens = 1;
    for (int guesses = 1; guesses <= kMost; ++guesses) {
      expected *= 0.8;
      tokens += expected;
      best = std::min(best, kPlainNs * (1 + share * guesses) / tokens);
    }
    const auto length = length_of("goodput-length");
    EXPECT_LT(run_of(*length, 400, share, mostly).ns_of_token, 1.12 * best) << share;
  }
}

TEST(GoodputLength, BeginsAgainWhereGuessesBecomeRight) {
  const auto length = length_of("goodput-length");
  run_of(*length, 300, 0.05, [](int) { return false; });
  const Spent run = run_of(*length, 600, 0.05, [](int) { return true; });
  EXPECT_GT(run.mean_length, 8);
}

TEST(GoodputLength, LooksAgainWithOneRowOfABatchInTurn) {
  constexpr std::size_t kRows = 4;
  const auto length = length_of("goodput-length", kRows);
  const std::vector<std::int64_t> most(kRows, kMost);
  std::vector<std::int64_t> looks(kRows, 0);
  for (int round = 0; round < 600; ++round) {
    const std::vector<std::int64_t> wanted = length->wanted(most);
    std::vector<DraftLength::Outcome> outcomes;
    std::int64_t guesses = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      outcomes.push_back({.proposed = wanted[row], .accepted = 0});
      guesses += wanted[row];
      looks[row] += round >= 100 ? wanted[row] : 0;
    }
    EXPECT_LE(guesses, round < 100 ? 1000 : 1) << "round " << round;
    // A guess costs as much as a row, as where products are bound by arithmetic.
    length->note(outcomes, 0, std::llround(kPlainNs * (1 + static_cast<double>(guesses) / kRows)));
  }
  EXPECT_GE(*std::ranges::max_element(looks), 1);
  EXPECT_LE(*std::ranges::max_element(looks), *std::ranges::min_element(looks) + 1);
}

TEST(GoodputLength, BeginsASessionWithWhatTheOnesBeforeSawAndLooksForItselfSoon) {
  const EnginePlan plan = bind_arm(parse_arm("causal,+goodput-length"), reference_plan());
  const auto first = plan.draft_length.factory()(1);
  const std::int64_t most[] = {kMost};
  EXPECT_EQ(first->wanted(most)[0], 0) << "nobody knows what a step costs";
  run_of(*first, 50, 0.05, [](int) { return false; });
  const auto second = plan.draft_length.factory()(1);
  const DraftLength::Outcome nothing[] = {{.proposed = 0, .accepted = 0}};
  int waited = 0;
  for (; second->wanted(most)[0] == 0; ++waited) {
    ASSERT_LT(waited, 8) << "a new row may be easier to guess";
    second->note(nothing, 0, std::llround(kPlainNs));
  }
  EXPECT_GT(waited, 0);
  EXPECT_EQ(plan.draft_length.factory()(4)->wanted(std::vector<std::int64_t>(4, kMost))[0], 0)
      << "four rows have prices of their own";
}

TEST(AdaptiveLength, FollowsEachRow) {
  const auto length = length_of("adaptive-length:start=3", 2);
  const std::int64_t most[] = {kMost, kMost};
  EXPECT_EQ(length->wanted(most), (std::vector<std::int64_t>{3, 3}));
  const DraftLength::Outcome outcome[] = {{.proposed = 3, .accepted = 3}, {.proposed = 3, .accepted = 2}};
  length->note(outcome, 0, 0);
  EXPECT_EQ(length->wanted(most), (std::vector<std::int64_t>{5, 2}));
  length->select({1, 0, 1});
  EXPECT_EQ(length->wanted(std::vector<std::int64_t>{9, 9, 1}), (std::vector<std::int64_t>{2, 5, 1}));
  const DraftLength::Outcome short_ones[] = {{.proposed = 2, .accepted = 0}, {.proposed = 1, .accepted = 1}, {}};
  length->note(short_ones, 0, 0);
  EXPECT_EQ(length->wanted(std::vector<std::int64_t>{9, 9, 9}), (std::vector<std::int64_t>{1, 5, 2}));
}

}  // namespace
}  // namespace decodelab
