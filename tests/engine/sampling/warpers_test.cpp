// What each warper promises, whatever the logits: properties of the reference. Hugging Face's values are in
// warpers_transformers_test.py.
#include "engine/sampling/warpers.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/sampling/token_history.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

constexpr float kNoLimit = std::numeric_limits<float>::infinity();
/// What sums of 50 fp32 probabilities may be away from the truth.
constexpr double kMassError = 1e-5;

/// Peaked, flat and in between; some with ties and with tokens that are out already.
std::vector<at::Tensor> many_logits() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(11);
  std::vector<at::Tensor> logits;
  for (const double width : {0.1, 1.0, 4.0, 20.0}) {
    for (int repeat = 0; repeat < 5; ++repeat) {
      logits.push_back(at::randn({50}, generator) * width);
      logits.push_back((at::randn({50}, generator) * width).round());
      logits.push_back(logits.front().clone());
      logits.back().narrow(0, 7, 20).fill_(-kNoLimit);
    }
  }
  return logits;
}

at::Tensor kept(const at::Tensor& warped) { return warped > -kNoLimit; }
at::Tensor exact_softmax(const at::Tensor& logits) { return at::softmax(logits.to(at::kDouble), 0); }

TEST(TopP, KeepsAtLeastItsMassAndWouldNotWithoutTheLeastLikelyOfTheKept) {
  for (const at::Tensor& logits : many_logits()) {
    const at::Tensor probabilities = exact_softmax(logits);
    for (const double p : {0.01, 0.3, 0.5, 0.9, 0.999}) {
      const at::Tensor mask = kept(warp_row(logits, {.sample = true, .top_p = p}));
      const at::Tensor of_kept = probabilities.masked_select(mask);
      ASSERT_GE(of_kept.numel(), 1);
      EXPECT_GE(of_kept.sum().item<double>(), p - kMassError);
      if (of_kept.numel() > 1) {
        EXPECT_LT(of_kept.sum().item<double>() - of_kept.min().item<double>(), p + kMassError);
      }
      const at::Tensor of_dropped = probabilities.masked_select(~mask);
      if (of_dropped.numel() > 0) {
        EXPECT_LE(of_dropped.max().item<double>(), of_kept.min().item<double>()) << "a likelier token was dropped";
      }
    }
  }
}

TEST(TopK, KeepsTheKHighestAndAllThatTieWithTheLast) {
  for (const at::Tensor& logits : many_logits()) {
    for (const std::int64_t k : {1, 2, 7, 49, 50, 1000}) {
      const at::Tensor mask = kept(warp_row(logits, {.sample = true, .top_k = k}));
      const at::Tensor descending = std::get<0>(logits.sort(0, true));
      const at::Tensor last = descending[std::min<std::int64_t>(k, 50) - 1];
      EXPECT_TRUE(at::equal(mask, (logits >= last).logical_and(kept(logits)))) << "k = " << k;
    }
  }
  const at::Tensor tied = at::tensor({1.0f, 3.0f, 3.0f, 3.0f, 2.0f});
  EXPECT_EQ(kept(warp_row(tied, {.sample = true, .top_k = 2})).sum().item<std::int64_t>(), 3);
}

TEST(TypicalP, KeepsTheTokensNearestToTheEntropyUntilTheirMassIsReached) {
  for (const at::Tensor& logits : many_logits()) {
    const at::Tensor probabilities = exact_softmax(logits);
    const at::Tensor surprise = -probabilities.log();
    const at::Tensor distance = (surprise - (probabilities * surprise).nan_to_num(0.0).sum()).abs();
    for (const double p : {0.05, 0.5, 0.95}) {
      const at::Tensor mask = kept(warp_row(logits, {.sample = true, .typical_p = p}));
      const at::Tensor of_kept = probabilities.masked_select(mask);
      ASSERT_GE(of_kept.numel(), 1);
      EXPECT_GE(of_kept.sum().item<double>(), p - kMassError);
      const at::Tensor farther = distance.masked_select(~mask);
      const at::Tensor nearest = distance.masked_select(mask);
      if (farther.numel() > 0) {
        EXPECT_GE(farther.min().item<double>(), nearest.max().item<double>() - 1e-4);
      }
    }
  }
}

TEST(TypicalP, KeepsEverythingWhereRoundingNeverReachesTheMass) {
  // The largest float below 1 rounds to no more than the sums do: the last index must be clamped to the vocabulary.
  const double almost_one = std::nextafter(1.0, 0.0);
  for (const at::Tensor& logits : many_logits()) {
    const at::Tensor warped = warp_row(logits, {.sample = true, .typical_p = almost_one});
    EXPECT_GE(at::softmax(logits, 0).masked_select(kept(warped)).sum().item<float>(), 1 - kMassError);
  }
}

TEST(Warpers, KeepOneTokenHoweverSmallTheirMass) {
  const SamplingParameters strictest{.sample = true, .top_k = 1, .top_p = 1e-9, .typical_p = 1e-9};
  for (const at::Tensor& logits : {at::tensor({0.0f}), at::tensor({1.0f, 0.0f, -kNoLimit}), at::tensor({5.0f, 4.0f})}) {
    EXPECT_EQ(kept(warp_row(logits, strictest)).sum().item<std::int64_t>(), 1);
  }
}

TEST(Warpers, LeaveTheBitsOfTheLogitsAloneWhereTheyAreNeutral) {
  for (const at::Tensor& logits : many_logits()) {
    EXPECT_TRUE(at::equal(warp_row(logits, {.sample = true}), logits));
  }
}

TEST(Warpers, NeverWriteToTheirInput) {
  for (const at::Tensor& logits : many_logits()) {
    const at::Tensor before = logits.clone();
    warp_row(logits, {.sample = true, .temperature = 0.5, .top_k = 5, .top_p = 0.5, .typical_p = 0.5});
    penalize_row(logits, at::ones({50}, at::kBool), {.repetition_penalty = 2});
    EXPECT_TRUE(at::equal(logits, before));
  }
}

TEST(RepetitionPenalty, BringsSeenTokensDownOnEitherSideOfZero) {
  const at::Tensor logits = at::tensor({2.0f, -2.0f, 2.0f, -2.0f, 0.0f});
  const at::Tensor seen = at::tensor({1, 1, 0, 0, 1}).to(at::kBool);
  EXPECT_TRUE(
      at::equal(penalize_row(logits, seen, {.repetition_penalty = 4}), at::tensor({0.5f, -8.0f, 2.0f, -2.0f, 0.0f})));
}

TEST(TokenHistory, ForgetsWhatATruncationCuts) {
  const auto seen = [](const TokenHistory& history) {
    std::vector<std::vector<std::int64_t>> ids;
    for (const at::Tensor& row : history.seen().unbind(0)) {
      const at::Tensor nonzero = row.nonzero().flatten();
      ids.emplace_back(nonzero.const_data_ptr<std::int64_t>(),
                       nonzero.const_data_ptr<std::int64_t>() + nonzero.numel());
    }
    return ids;
  };
  using Ids = std::vector<std::vector<std::int64_t>>;
  TokenHistory history(2, 10, at::kCPU);
  history.add(Ids{{1, 2, 1}, {3}}, {0, 0});
  EXPECT_EQ(seen(history), (Ids{{1, 2}, {3}}));
  history.add(at::tensor({4, 5}, at::kLong).unsqueeze(1), {3, 1});
  history.add(at::tensor({6, 7}, at::kLong).unsqueeze(1), {4, 2});
  EXPECT_EQ(seen(history), (Ids{{1, 2, 4, 6}, {3, 5, 7}}));
  history.add(Ids{{}, {8, 9}}, {5, 3});
  EXPECT_EQ(seen(history), (Ids{{1, 2, 4, 6}, {3, 5, 7, 8, 9}}));
  history.truncate(1, 4);
  EXPECT_EQ(seen(history), (Ids{{1, 2, 4, 6}, {3, 5, 7, 8}})) << "the other row is left alone";
  history.truncate(0, 2);
  history.truncate(1, 2);
  EXPECT_EQ(seen(history), (Ids{{1, 2}, {3, 5}}));
  history.truncate(0, 1);
  history.truncate(1, 1);
  EXPECT_EQ(seen(history), (Ids{{1}, {3}}));
}

}  // namespace
}  // namespace decodelab
