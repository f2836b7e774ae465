// Every implementation of the slot `rng`: the frequencies of its draws, and the numbers of Philox's.
#include "engine/sampling/rng.h"

#include <cmath>
#include <functional>
#include <numeric>

#include <boost/math/distributions/chi_squared.hpp>
#include <gtest/gtest.h>

#include "engine/layers/workspace.h"
#include "engine/runtime.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_choice.h"
#include "engine/sampling/warpers.h"
#include "tests/variants/arms.h"
#include "variants/rng/philox_race.h"

namespace decodelab {
namespace {

constexpr std::int64_t kDrawnTokens = 24;
constexpr std::int64_t kRows = 500;
constexpr std::int64_t kDrawnSteps = 80;
/// Seeds are fixed, so that a right generator that passes once passes always.
constexpr double kLeastP = 1e-4;

/// The reference, and every variant that binds the slot.
std::vector<std::string> rng_arms() {
  std::vector<std::string> arms{"causal"};
  for (const auto& [name, variant] : registered_variants()) {
    if (std::ranges::count(slots_bound_by(variant), "rng") != 0) {
      arms.push_back("causal,+" + name);
    }
  }
  return arms;
}

EnginePlan rng_plan(const std::string& arm) { return bind_arm(parse_arm(arm), reference_plan()); }

std::vector<std::uint64_t> seeds(std::int64_t count, std::uint64_t first = 1) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

at::Tensor some_logits() {
  return at::tensor({2.0f, 1.9f, 1.0f, 0.0f, -1.0f, -2.0f, 0.3f, 0.3f, 0.3f, 1.2f,  0.7f, -0.4f,
                     0.1f, 0.2f, 0.9f, 1.1f, -1.5f, 0.6f,  0.8f, 1.4f, 1.6f, -0.1f, 0.5f, 0.4f});
}

/// The p value of Pearson's chi-square of `counts` [V] against `probabilities` [V].
double p_of(const at::Tensor& counts, const at::Tensor& probabilities) {
  const at::Tensor expected = probabilities.to(at::kDouble) * counts.sum().item<std::int64_t>();
  const at::Tensor possible = expected > 0;
  EXPECT_EQ(counts.masked_select(~possible).sum().item<std::int64_t>(), 0) << "a token without probability was drawn";
  const at::Tensor e = expected.masked_select(possible);
  const at::Tensor o = counts.to(at::kDouble).masked_select(possible);
  const double statistic = ((o - e).square() / e).sum().item<double>();
  const boost::math::chi_squared distribution(static_cast<double>(e.numel() - 1));
  return boost::math::cdf(boost::math::complement(distribution, statistic));
}

/// How often each token came in `steps` calls of `draw`, which gives [S, 1].
at::Tensor counts_of(const std::function<at::Tensor()>& draw, std::int64_t steps) {
  at::Tensor counts = at::zeros({kDrawnTokens}, at::kLong);
  for (std::int64_t step = 0; step < steps; ++step) {
    counts += at::bincount(draw().flatten(), {}, kDrawnTokens);
  }
  return counts;
}

TEST(EveryRng, DrawsTokensAsOftenAsTheirProbabilitiesSay) {
  const at::Tensor probabilities = at::softmax(some_logits(), 0);
  for (const std::string& arm : rng_arms()) {
    for (const auto& [rows, steps] : {std::pair(kRows, kDrawnSteps), std::pair<std::int64_t, std::int64_t>(1, 20000)}) {
      const auto rng = rng_plan(arm).rng.factory()({.seeds = seeds(rows), .device = "cpu"});
      const at::Tensor all = probabilities.expand({rows, kDrawnTokens}).contiguous();
      const double p = p_of(counts_of([&] { return rng->draw(all); }, steps), probabilities);
      EXPECT_GT(p, kLeastP) << arm << ", " << rows << " rows";
      EXPECT_LT(p, 1 - kLeastP) << arm << ", " << rows << " rows: too regular for chance";
    }
  }
}

TEST(EveryRng, WouldBeCaughtIfItsDrawsWereBiased) {
  const at::Tensor probabilities = at::softmax(some_logits(), 0);
  const at::Tensor all = probabilities.expand({kRows, kDrawnTokens}).contiguous();
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(3);
  const at::Tensor uniform_race =
      counts_of([&] { return (all / at::empty_like(all).uniform_(0, 1, generator)).argmax(1); }, kDrawnSteps);
  EXPECT_LT(p_of(uniform_race, probabilities), kLeastP);
  const at::Tensor slightly_warmer = counts_of(
      [&] { return (all.pow(0.96) / at::empty_like(all).exponential_(1, generator)).argmax(1); }, kDrawnSteps);
  EXPECT_LT(p_of(slightly_warmer, probabilities), kLeastP);
}

TEST(EveryRng, DrawsFromTheWarpedLogitsInBothChoices) {
  const SamplingParameters wishes{.sample = true, .temperature = 0.7, .top_k = 12, .top_p = 0.9};
  const at::Tensor expected = at::softmax(warp_row(some_logits(), wishes), 0);
  const at::Tensor logits = some_logits().expand({kRows, kDrawnTokens}).contiguous();
  for (const std::string& rng : rng_arms()) {
    for (const std::string choice : {"", ",+vectorized-choice"}) {
      const EnginePlan plan = rng_plan(rng + choice);
      std::vector<SamplingParameters> rows(kRows, wishes);
      for (std::size_t row = 0; row < rows.size(); ++row) {
        rows[row].seed = 1000 + row;
      }
      const auto chooser = plan.token_choice.factory()({.rows = rows, .device = "cpu", .make_rng = plan.rng.factory()});
      PlainWorkspace workspace;
      const at::Tensor counts =
          counts_of([&] { return chooser->choose({.logits = logits, .workspace = workspace}).device; }, 10);
      EXPECT_GT(p_of(counts, expected), kLeastP) << rng << choice;
    }
  }
}

TEST(EveryRng, NeverDrawsWhatHasNoProbability) {
  at::Tensor probabilities = at::zeros({3, 1000});
  probabilities.select(1, 999).fill_(1e-30);
  for (const std::string& arm : rng_arms()) {
    const auto rng = rng_plan(arm).rng.factory()({.seeds = seeds(3), .device = "cpu"});
    for (int step = 0; step < 200; ++step) {
      EXPECT_TRUE((rng->draw(probabilities) == 999).all().item<bool>()) << arm;
    }
  }
}

/// Tokens of `steps` draws, [S, steps], from probabilities that differ from row to row.
at::Tensor tokens_of(const std::string& arm, const std::vector<std::uint64_t>& row_seeds,
                     const at::Tensor& probabilities, std::int64_t steps) {
  const auto rng = rng_plan(arm).rng.factory()({.seeds = row_seeds, .device = "cpu"});
  std::vector<at::Tensor> tokens;
  for (std::int64_t step = 0; step < steps; ++step) {
    tokens.push_back(rng->draw(probabilities));
  }
  return at::cat(tokens, 1);
}

TEST(RowAndPhiloxRng, GiveARowTheSameTokensWhateverIsBesideIt) {
  const std::vector<std::uint64_t> row_seeds{5, 0, 0xffffffffffffffffu, 77, 5};
  const at::Tensor probabilities = at::softmax(at::arange(5 * 20000).reshape({5, 20000}).remainder(977) * 0.01f, 1);
  for (const std::string arm : {"causal", "causal,+philox-rng"}) {
    const at::Tensor together = tokens_of(arm, row_seeds, probabilities, 6);
    for (std::int64_t row = 0; row < 5; ++row) {
      const at::Tensor alone =
          tokens_of(arm, {row_seeds[static_cast<std::size_t>(row)]}, probabilities.narrow(0, row, 1).contiguous(), 6);
      EXPECT_TRUE(at::equal(together.narrow(0, row, 1), alone)) << arm << ", row " << row;
    }
    const std::vector<std::uint64_t> reversed(row_seeds.rbegin(), row_seeds.rend());
    EXPECT_TRUE(at::equal(tokens_of(arm, reversed, probabilities.flip(0).contiguous(), 6), together.flip(0))) << arm;
    EXPECT_FALSE(at::equal(tokens_of(arm, {1, 2, 3, 4, 6}, probabilities, 6), together)) << arm;
    EXPECT_FALSE(at::equal(together.select(1, 0), together.select(1, 1))) << arm << ": two steps drew alike";
  }
}

TEST(PhiloxRng, GivesTheTokensThatItAlwaysGaveForASeed) {
  // A published sample can be made again only as long as these stand.
  const at::Tensor probabilities = at::full({3, 1024}, 1.0 / 1024);
  const at::Tensor expected =
      at::tensor({366, 102, 944, 436, 673, 377, 714, 901, 26, 300, 720, 69, 38, 210, 643, 91, 240, 565}, at::kLong);
  EXPECT_TRUE(
      at::equal(tokens_of("causal,+philox-rng", {0, 42, 0xffffffffffffffffu}, probabilities, 6).flatten(), expected));
}

TEST(PhiloxRng, GivesTheSameTokensOnAnyNumberOfThreads) {
  const at::Tensor probabilities = at::softmax(at::arange(40000).remainder(311) * 0.01f, 0).unsqueeze(0);
  const std::int64_t before = threads();
  set_threads(1);
  const at::Tensor on_one = tokens_of("causal,+philox-rng", {9}, probabilities, 20);
  set_threads(before);
  EXPECT_TRUE(at::equal(tokens_of("causal,+philox-rng", {9}, probabilities, 20), on_one));
}

TEST(PhiloxRng, GivesTheSameTokensOnCuda) {
  if (present_devices().size() < 2) {
    GTEST_SKIP() << "no CUDA device is present";
  }
  for (const std::int64_t vocabulary : {1, 255, 256, 257, 49280}) {
    const at::Tensor probabilities =
        at::softmax(at::arange(3 * vocabulary).reshape({3, vocabulary}).remainder(977) * 0.01f, 1);
    const auto rng = rng_plan("causal,+philox-rng").rng.factory()({.seeds = {1, 2, 3}, .device = "cuda:0"});
    std::vector<at::Tensor> tokens;
    for (int step = 0; step < 20; ++step) {
      tokens.push_back(rng->draw(probabilities.to("cuda:0")).cpu());
    }
    EXPECT_TRUE(at::equal(at::cat(tokens, 1), tokens_of("causal,+philox-rng", {1, 2, 3}, probabilities, 20)))
        << vocabulary;
  }
}

TEST(PhiloxRace, TakesTheTokenThatAPlainLoopOverItsDefinitionTakes) {
  for (const std::int64_t count : {1, 63, 64, 256, 257, 1000, 9001}) {
    const at::Tensor probabilities = at::softmax(at::arange(count).remainder(89) * 0.02f, 0);
    const float* p = probabilities.const_data_ptr<float>();
    for (const std::int64_t step : {0, 1, 12345}) {
      std::int64_t expected = 0;
      float best = -1;
      for (std::int64_t token = 0; token < count; ++token) {
        const PhiloxWords words = philox4x32(
            philox_counter(static_cast<std::uint64_t>(token / 256 * 64 + token % 64), static_cast<std::uint64_t>(step)),
            42);
        const float score = p[token] / exponential_float(words.word[token % 256 / 64]);
        if (score > best) {
          best = score;
          expected = token;
        }
      }
      EXPECT_EQ(race_winner(race_on_cpu(p, 0, count, 42, step)), expected) << count << " tokens, step " << step;
    }
  }
}

TEST(PhiloxRace, SkipsNoTokenBetweenEmptyChunksAndBreaksTiesByTheLowestId) {
  std::vector<float> probabilities(5000, 0.0f);
  for (const std::size_t token : {0u, 255u, 256u, 2047u, 4999u}) {
    probabilities.assign(probabilities.size(), 0.0f);
    probabilities[token] = 0.5f;
    EXPECT_EQ(race_winner(race_on_cpu(probabilities.data(), 0, 5000, 1, 0)), static_cast<std::int64_t>(token));
  }
  EXPECT_GT(race_key(7, 3), race_key(7, 4));
  EXPECT_GT(race_key(8, 4), race_key(7, 3));
  EXPECT_EQ(race_winner(race_key(7, 4)), 4);
  probabilities.assign(probabilities.size(), std::numeric_limits<float>::quiet_NaN());
  EXPECT_LT(race_winner(race_on_cpu(probabilities.data(), 0, 5000, 1, 0)), 5000) << "no token of the vocabulary";
}

TEST(ExponentialFloat, IsTheLogarithmOfWhatTheBitsLeave) {
  const auto check = [](std::uint32_t bits) {
    const double u = (static_cast<double>(bits >> 1) + 0.5) / 2147483648.0;
    const double expected = -std::log1p(-u);
    EXPECT_NEAR(exponential_float(bits) / expected, 1, 4e-7) << bits;
  };
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 65521) {
    check(static_cast<std::uint32_t>(bits));
  }
  for (const std::uint32_t bits :
       {0u, 1u, 2u, 3u, 4u, 0x12345u, 0x95f61998u, 0x95f6199au, 0xfffffffcu, 0xfffffffeu, 0xffffffffu}) {
    check(bits);
  }
  EXPECT_GT(exponential_float(0), 0.0f);
  EXPECT_TRUE(std::isfinite(exponential_float(0xffffffffu)));
}

}  // namespace
}  // namespace decodelab
