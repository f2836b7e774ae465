// The vectorized warpers against the reference's: the same bits, whatever the rows beside them ask for.
#include "variants/token_choice/batch_warpers.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/sampling/warpers.h"

namespace decodelab {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Wishes of one batch: neutral ones, each warper alone, at its limits, and together.
std::vector<SamplingParameters> mixed_rows() {
  return {{.sample = true},
          {.sample = true, .temperature = 0.3},
          {.sample = true, .top_k = 1},
          {.sample = true, .top_k = 7},
          {.sample = true, .top_k = 100000},
          {.sample = true, .top_p = 0.9},
          {.sample = true, .top_p = 1e-6},
          {.sample = true, .typical_p = 0.2},
          {.sample = true, .typical_p = 0.999999},
          {.sample = true, .temperature = 1.7, .top_k = 40, .top_p = 0.8, .typical_p = 0.7},
          {.sample = true, .temperature = 0.1, .top_p = 0.99, .repetition_penalty = 1.3}};
}

/// Random, tied, underflowing and masked logits, a row for each of mixed_rows().
at::Tensor logits_of(std::int64_t vocabulary, std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(seed);
  const auto rows = static_cast<std::int64_t>(mixed_rows().size());
  at::Tensor logits = at::randn({rows, vocabulary}, generator) * 3;
  if (seed % 3 == 1) {
    logits.round_();
  }
  if (seed % 3 == 2) {
    logits.select(1, 0).fill_(150);  // Everything else underflows to probability 0.
    logits.narrow(1, vocabulary / 2, vocabulary / 3).fill_(-kInfinity);
  }
  return logits;
}

const std::vector<std::int64_t> kVocabularies{1, 2, 97, 5000};

TEST(BatchWarpers, GiveEachRowTheBitsOfTheReferenceInAMixedBatch) {
  const std::vector<SamplingParameters> rows = mixed_rows();
  const BatchWarpers warpers(rows, at::kCPU);
  for (const std::int64_t vocabulary : kVocabularies) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const at::Tensor logits = logits_of(vocabulary, seed);
      const at::Tensor warped = warpers.warp(logits);
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto index = static_cast<std::int64_t>(row);
        EXPECT_TRUE(at::equal(warped[index], warp_row(logits[index], rows[row])))
            << "row " << row << ", vocabulary " << vocabulary << ", seed " << seed;
      }
    }
  }
}

TEST(BatchWarpers, GiveARowTheSameBitsAloneAndInABatch) {
  const std::vector<SamplingParameters> rows = mixed_rows();
  const at::Tensor logits = logits_of(40000, 4);
  const at::Tensor together = BatchWarpers(rows, at::kCPU).warp(logits);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto index = static_cast<std::int64_t>(row);
    const BatchWarpers alone(std::vector<SamplingParameters>{rows[row]}, at::kCPU);
    EXPECT_TRUE(at::equal(alone.warp(logits.narrow(0, index, 1)), together.narrow(0, index, 1))) << "row " << row;
  }
}

TEST(BatchWarpers, ChangeNoBitOfANeutralRow) {
  const std::vector<SamplingParameters> rows = mixed_rows();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const at::Tensor logits = logits_of(97, seed);
    EXPECT_TRUE(at::equal(BatchWarpers(rows, at::kCPU).warp(logits)[0], logits[0])) << "seed " << seed;
    const std::vector<SamplingParameters> neutral(rows.size(), SamplingParameters{.sample = true});
    EXPECT_TRUE(BatchWarpers(neutral, at::kCPU).warp(logits).is_same(logits)) << "nothing had to be computed";
  }
}

TEST(BatchWarpers, NeverWriteToTheirInput) {
  const at::Tensor logits = logits_of(97, 2);
  const at::Tensor before = logits.clone();
  BatchWarpers(mixed_rows(), at::kCPU).warp(logits);
  BatchPenalty(mixed_rows(), at::kCPU).penalize(logits, at::ones(logits.sizes(), at::kBool));
  EXPECT_TRUE(at::equal(logits, before));
}

TEST(BatchPenalty, GivesEachRowTheBitsOfTheReference) {
  std::vector<SamplingParameters> rows = mixed_rows();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row].repetition_penalty = 1 + 0.1 * static_cast<double>(row);
  }
  const at::Tensor logits = logits_of(97, 1);
  const at::Tensor seen = at::arange(97).remainder(3) == 0;
  const at::Tensor penalized = BatchPenalty(rows, at::kCPU).penalize(logits, seen.expand(logits.sizes()));
  EXPECT_TRUE(at::equal(penalized[0], logits[0])) << "a penalty of 1 changes nothing";
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto index = static_cast<std::int64_t>(row);
    EXPECT_TRUE(at::equal(penalized[index], penalize_row(logits[index], seen, rows[row]))) << "row " << row;
  }
}

}  // namespace
}  // namespace decodelab
