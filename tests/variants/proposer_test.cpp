// Guesses of proposers are those of a plain search.
#include "engine/sequences/proposer.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "bench/plan/arm.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

using Tokens = std::vector<std::int64_t>;

std::unique_ptr<Proposer> proposer_of(const std::string& variant, std::int64_t rows = 1) {
  return bind_arm(parse_arm("causal,+" + variant), reference_plan()).proposer.value().make({.rows = rows});
}

/// What follows the first place where the last `length` tokens end, unless that is the end of all.
Tokens after_first(const Tokens& tokens, std::size_t length, std::size_t most) {
  for (std::size_t end = length; end < tokens.size(); ++end) {
    if (std::equal(tokens.end() - static_cast<std::ptrdiff_t>(length), tokens.end(),
                   tokens.begin() + static_cast<std::ptrdiff_t>(end - length))) {
      return {tokens.begin() + static_cast<std::ptrdiff_t>(end),
              tokens.begin() + static_cast<std::ptrdiff_t>(std::min(tokens.size(), end + most))};
    }
  }
  return {};
}

Tokens after_longest(const Tokens& tokens, std::size_t longest, std::size_t most) {
  for (std::size_t length = std::min(longest, tokens.size() - 1); length > 0; --length) {
    if (Tokens found = after_first(tokens, length, most); !found.empty()) {
      return found;
    }
  }
  return {};
}

Tokens random_tokens(std::mt19937& random, std::size_t length, std::int64_t different) {
  Tokens tokens;
  for (std::size_t token = 0; token < length; ++token) {
    tokens.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(different)));
  }
  return tokens;
}

/// Adds tokens one by one and holds each guess against a search; sometimes goes back.
void expect_guesses(const std::string& variant, std::size_t longest, std::size_t most) {
  std::mt19937 random(5);
  for (const std::int64_t different : {1, 2, 3, 7, 50000}) {
    const auto proposer = proposer_of(variant);
    Tokens so_far;
    for (const std::int64_t token : random_tokens(random, 300, different)) {
      if (random() % 50 == 0) {
        so_far.resize(so_far.size() / 2);
        proposer->truncate(0, std::ssize(so_far));
      }
      so_far.push_back(token);
      proposer->add(0, {&token, 1});
      const std::int64_t budget = static_cast<std::int64_t>(random() % 20);
      const Tokens guess = proposer->propose({&budget, 1}).front();
      ASSERT_EQ(guess, after_longest(so_far, longest, std::min(most, static_cast<std::size_t>(budget))))
          << variant << ", " << different << " tokens, after " << so_far.size();
    }
  }
}

TEST(Proposers, LookUpFindsTheLongestOfAFewLastTokensWhereItStoodFirst) {
  expect_guesses("ngram-lookup", 2, 10);
  expect_guesses("ngram-lookup:match=1:tokens=3", 1, 3);
  expect_guesses("ngram-lookup:match=5:tokens=64", 5, 64);
}

TEST(Proposers, TheAutomatonFindsTheLongestRunThatStoodBefore) {
  expect_guesses("suffix-automaton", 1000, 8);
  expect_guesses("suffix-automaton:tokens=1", 1000, 1);
}

TEST(Proposers, RowsKeepTheirTokensWhenTheyMove) {
  for (const std::string variant : {"ngram-lookup:tokens=2", "suffix-automaton:tokens=2"}) {
    const auto proposer = proposer_of(variant, 2);
    proposer->add(0, Tokens{1, 2, 3, 1});
    proposer->add(1, Tokens{7, 8, 9, 7});
    const std::vector<std::int64_t> budgets{5, 5};
    EXPECT_EQ(proposer->propose(budgets), (std::vector<Tokens>{{2, 3}, {8, 9}}));
    proposer->select({1, 0});
    EXPECT_EQ(proposer->propose(budgets), (std::vector<Tokens>{{8, 9}, {2, 3}}));
    proposer->select({1, 1});
    proposer->add(0, Tokens{5});
    EXPECT_EQ(proposer->propose(budgets), (std::vector<Tokens>{{}, {2, 3}})) << "a copy goes on by itself";
    const auto other = proposer_of(variant, 1);
    other->add(0, Tokens{4, 4});
    proposer->append(*other);
    EXPECT_EQ(proposer->propose(std::vector<std::int64_t>{5, 5, 5}), (std::vector<Tokens>{{}, {2, 3}, {4}}));
    EXPECT_EQ(proposer->propose(std::vector<std::int64_t>{0, 1, 0}), (std::vector<Tokens>{{}, {2}, {}}));
  }
}

/// The probability that of `count` guesses, each right with probability `rate`, at most `right` are right.
double at_most(std::int64_t right, std::int64_t count, double rate) {
  double sum = 0;
  for (std::int64_t of = 0; of <= right; ++of) {
    const auto n = static_cast<double>(count);
    const auto k = static_cast<double>(of);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(rate) +
                    (n - k) * std::log1p(-rate));
  }
  return sum;
}

TEST(Proposers, TheOracleIsRightAsOftenAsItWasAskedTo) {
  constexpr std::int64_t kRows = 8;
  constexpr std::int64_t kTokens = 400;
  std::mt19937 random(9);
  std::vector<Tokens> truth;
  for (std::int64_t row = 0; row < kRows; ++row) {
    truth.push_back(random_tokens(random, kTokens, 1000));
  }
  for (const std::int64_t percent : {0, 5, 50, 80, 95, 100}) {
    const auto proposer = proposer_of("oracle-draft:tokens=1:percent=" + std::to_string(percent), kRows);
    proposer->foretell(truth);
    std::int64_t right = 0;
    for (std::int64_t token = 0; token < kTokens; ++token) {
      const std::vector<Tokens> guesses = proposer->propose(std::vector<std::int64_t>(kRows, 1));
      for (std::int64_t row = 0; row < kRows; ++row) {
        const std::int64_t said = truth[static_cast<std::size_t>(row)][static_cast<std::size_t>(token)];
        right += guesses[static_cast<std::size_t>(row)] == Tokens{said} ? 1 : 0;
        proposer->add(row, {&said, 1});
      }
    }
    constexpr std::int64_t kAll = kRows * kTokens;
    if (percent == 0 || percent == 100) {
      EXPECT_EQ(right, kAll * percent / 100);
      continue;
    }
    const double rate = static_cast<double>(percent) / 100;
    EXPECT_GT(at_most(right, kAll, rate), 0.0005) << right << " of " << kAll << " at " << percent << " %";
    EXPECT_LT(at_most(right - 1, kAll, rate), 0.9995) << right << " of " << kAll << " at " << percent << " %";
  }
}

TEST(Proposers, TheOracleGuessesTheRoundsOfATraceAgain) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "rounds.jsonl").string();
  std::ofstream(file) << "{\"rounds\":[[3,2],[2,0],[0,0],[4,4]]}\n{\"rounds\":[[1,1]]}\n";
  const auto proposer = proposer_of("oracle-draft:tokens=3:trace=" + file, 3);
  const Tokens prompt{9, 9};
  for (std::int64_t row = 0; row < 3; ++row) {
    proposer->add(row, prompt);
  }
  const std::vector<Tokens> truth(3, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<std::int64_t> budgets(3, 8);
  for (int step = 0; step < 2; ++step) {  // Whoever is told again begins again.
    proposer->foretell(truth);
    const std::vector<Tokens> first = proposer->propose(budgets);
    EXPECT_EQ(first[0], (Tokens{1, 2, 2})) << "two of three are right";
    EXPECT_EQ(first[1], (Tokens{1}));
    EXPECT_EQ(first[2], first[0]) << "there are two completions for three rows";
    proposer->add(0, Tokens{1, 2, 3});
    EXPECT_EQ(proposer->propose(budgets)[0], (Tokens{3, 4})) << "none of two is right";
    EXPECT_EQ(proposer->propose(budgets)[0], Tokens{}) << "nothing was guessed";
    for (std::int64_t row = 0; row < 3; ++row) {
      proposer->truncate(row, 2);
    }
  }
  EXPECT_THROW(proposer_of("oracle-draft:trace=no/such/file"), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
