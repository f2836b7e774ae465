// Rejection leaves the distribution of drawn tokens as it is; what is often done wrong does not.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "engine/sampling/acceptance.h"
#include "engine/tensor.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::small_config;
using testing::small_model;

using Distribution = std::vector<double>;

at::Tensor line_of(const Distribution& values) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble).unsqueeze(0);
}

/// A round of one row that draws, with one guess and the random numbers of a grid.
class OneGuess final : public Round {
 public:
  OneGuess(Distribution p, const Distribution& q, std::int64_t guess)
      : p_(std::move(p)), guesses_{{guess}}, q_(line_of(q).to(at::kFloat)) {}

  double accept = 0;     ///< The random number for the guess.
  double replace = 0;    ///< That for the token in its place.
  double go_on = 0;      ///< That for the token behind it.
  bool certain = false;  ///< Says that nobody drew the guess.

  const std::vector<std::vector<std::int64_t>>& guesses() const override { return guesses_; }
  std::vector<std::int64_t> choose(std::int64_t, const std::vector<std::int64_t>&) override {
    throw std::logic_error("no row is greedy");
  }
  bool draws(std::int64_t) const override { return true; }
  std::vector<std::int64_t> pick(std::int64_t, const std::vector<std::int64_t>&, const Picker& picker) override {
    return picker(line_of(p_));
  }
  const at::Tensor* drawn_from(std::int64_t) const override { return certain ? nullptr : &q_; }
  double uniform(std::int64_t, std::int64_t, Use use) const override {
    return use == Use::accept ? accept : use == Use::replace ? replace : go_on;
  }
  bool is_plain() const override { return false; }
  std::vector<std::vector<std::int64_t>> choose_all() override { throw std::logic_error("the row draws"); }

 private:
  Distribution p_;
  std::vector<std::vector<std::int64_t>> guesses_;
  at::Tensor q_;
};

constexpr int kStrata = 400;

std::unique_ptr<Acceptance> rejection() {
  return bind_arm(parse_arm("causal,+rejection-accept"), reference_plan()).acceptance.factory()();
}

/// The distribution of the first token said, where guesses are drawn from `q` and the row would draw from `p`: with
/// every stratum of both random numbers, not by chance. `lie` changes what the rule is told.
Distribution said_first(const Distribution& p, const Distribution& q, const std::function<void(OneGuess&)>& lie = {}) {
  const std::unique_ptr<Acceptance> rule = rejection();
  Distribution said(p.size(), 0);
  for (std::size_t guess = 0; guess < q.size(); ++guess) {
    if (q[guess] == 0) {
      continue;
    }
    OneGuess round(p, q, static_cast<std::int64_t>(guess));
    for (int accept = 0; accept < kStrata; ++accept) {
      round.accept = (accept + 0.5) / kStrata;
      round.replace = 0;
      if (lie) {
        lie(round);
      }
      if (rule->accept(round)[0][0] == static_cast<std::int64_t>(guess) && rule->accept(round)[0].size() == 2) {
        said[guess] += q[guess] / kStrata;
        continue;
      }
      for (int replace = 0; replace < kStrata; ++replace) {
        round.replace = (replace + 0.5) / kStrata;
        if (lie) {
          lie(round);
        }
        said[static_cast<std::size_t>(rule->accept(round)[0][0])] += q[guess] / kStrata / kStrata;
      }
    }
  }
  return said;
}

double total_variation(const Distribution& one, const Distribution& other) {
  double sum = 0;
  for (std::size_t token = 0; token < one.size(); ++token) {
    sum += std::abs(one[token] - other[token]) / 2;
  }
  return sum;
}

/// Pairs of distributions whose numbers are multiples of a stratum's share, so that strata leave no error.
const std::vector<std::pair<Distribution, Distribution>>& pairs() {
  static const std::vector<std::pair<Distribution, Distribution>> all{
      {{0.5, 0.5}, {0.25, 0.75}},
      {{0.2, 0.3, 0.5}, {0.5, 0.3, 0.2}},
      {{0, 0.4, 0.6}, {0.5, 0.25, 0.25}},
      {{0.25, 0.25, 0.25, 0.25}, {0.25, 0.25, 0.25, 0.25}},
      {{0.1, 0.2, 0.3, 0.4, 0}, {0, 0, 0.5, 0.25, 0.25}},
      {{0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}, {0.5, 0.25, 0.125, 0.125, 0, 0, 0, 0}}};
  return all;
}

TEST(Rejection, LeavesTheDistributionAsItIs) {
  for (const auto& [p, q] : pairs()) {
    // A boundary that falls into a stratum moves at most that stratum's share.
    EXPECT_LT(total_variation(said_first(p, q), p), 3.0 / kStrata) << p.size();
  }
}

TEST(Rejection, KeepsEveryGuessThatWasDrawnFromTheSame) {
  const std::unique_ptr<Acceptance> rule = rejection();
  const Distribution p{0.125, 0.25, 0.625};  // Exact in both types.
  for (std::int64_t guess = 0; guess < 3; ++guess) {
    OneGuess round(p, p, guess);
    round.accept = 1 - 0x1p-53;  // The largest number that there is.
    EXPECT_EQ(rule->accept(round)[0].size(), 2u);
  }
}

TEST(Rejection, LeavesTheDistributionAsItIsWhereAGuessIsTakenForCertain) {
  for (const auto& [p, q] : pairs()) {
    EXPECT_LT(total_variation(said_first(p, q, [](OneGuess& round) { round.certain = true; }), p), 3.0 / kStrata);
  }
}

TEST(Rejection, RefusesAGuessThatCannotCome) {
  OneGuess round({0, 1}, {0.5, 0.5}, 0);
  round.accept = 0;
  EXPECT_EQ(rejection()->accept(round)[0], (std::vector<std::int64_t>{1}));
}

TEST(Rejection, FailsTheTestAboveWhereTheRuleIsToldSomethingWrong) {
  const auto& [p, q] = pairs()[1];
  constexpr double kSeen = 0.02;
  const auto& [many, some] = pairs()[4];
  EXPECT_GT(total_variation(said_first(many, some, [](OneGuess& round) { round.replace = round.accept; }), many), kSeen)
      << "one random number serves both";
  EXPECT_GT(total_variation(said_first(p, q, [](OneGuess& round) { round.accept = 0; }), p), kSeen)
      << "every guess that can come is kept";
  const Distribution flat{1.0 / 3, 1.0 / 3, 1.0 / 3};
  EXPECT_GT(total_variation(said_first(flat, q), p), kSeen) << "another distribution is aimed at";
}

/// Counts of the first three tokens, which are of `kinds` kinds each, in `runs` completions.
std::map<std::vector<std::int64_t>, double> joint_counts(const Engine& engine, std::int64_t runs) {
  constexpr std::int64_t kBatch = 250;
  std::map<std::vector<std::int64_t>, double> counts;
  for (std::int64_t run = 0; run < runs; run += kBatch) {
    GenerationRequest request{.prompts = std::vector<std::vector<std::int64_t>>(kBatch, {5, 17, 3}), .max_tokens = 4};
    for (std::int64_t row = 0; row < kBatch; ++row) {
      request.sampling.push_back(
          {.sample = true, .temperature = 3, .top_k = 3, .seed = static_cast<std::uint64_t>(1000 + run + row)});
    }
    for (const Completion& completion : generate(engine, request)) {
      counts[{completion.token_ids.begin() + 1, completion.token_ids.begin() + 4}] += 1;
    }
  }
  return counts;
}

/// The G statistic of two samples over the number of cells less one; about 1 where both have one distribution.
double g_of(const std::map<std::vector<std::int64_t>, double>& one,
            const std::map<std::vector<std::int64_t>, double>& other, double runs) {
  std::map<std::vector<std::int64_t>, double> both = one;
  for (const auto& [key, count] : other) {
    both[key] += count;
  }
  double g = 0;
  double cells = 0;
  constexpr double kFewest = 20;
  double rest[2] = {0, 0};
  const auto add = [&](double a, double b) {
    for (const double count : {a, b}) {
      if (count > 0) {
        g += 2 * count * std::log(2 * count / (a + b));
      }
    }
    ++cells;
  };
  for (const auto& [key, count] : both) {
    const double a = one.contains(key) ? one.at(key) : 0;
    const double b = count - a;
    if (count < kFewest) {
      rest[0] += a;
      rest[1] += b;
    } else {
      add(a, b);
    }
  }
  if (rest[0] + rest[1] > 0) {
    add(rest[0], rest[1]);
  }
  EXPECT_GT(cells, 20) << "of " << runs << " runs";
  return g / (cells - 1);
}

TEST(Rejection, DrawsTheFirstTokensTogetherAsPlainDecodingDoes) {
  const auto model = small_model(small_config());
  constexpr std::int64_t kRuns = 4000;
  const auto plain = joint_counts(testing::engine_for("native", model), kRuns);
  for (const std::string arm : {"native,-batched-accept,+rejection-accept,+early-exit:tokens=3",
                                "native,-batched-accept,+rejection-accept,+draft-model:draft=self:tokens=2"}) {
    const auto guessed = joint_counts(testing::engine_for(arm, model), kRuns);
    // 1.6 is beyond the 99th percentile with 50 degrees of freedom, and the seeds are fixed.
    EXPECT_LT(g_of(plain, guessed, kRuns), 1.6) << arm;
  }
}

}  // namespace
}  // namespace decodelab
