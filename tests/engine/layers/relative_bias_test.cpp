// Buckets of distances, against those of Hugging Face Transformers' T5.
#include "engine/layers/relative_bias.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr RelativeBias kT5{.buckets = 32, .most_distance = 128};

/// Distances at which a bucket begins, from -300 on, printed by T5Attention._relative_position_bucket.
using Beginnings = std::vector<std::pair<std::int64_t, std::int64_t>>;

void expect_buckets(const Beginnings& beginnings, bool both_ways) {
  auto next = beginnings.begin();
  std::int64_t expected = -1;
  for (std::int64_t distance = -300; distance <= 300; ++distance) {
    if (next != beginnings.end() && next->first == distance) {
      expected = next->second;
      ++next;
    }
    EXPECT_EQ(relative_bucket(kT5, distance, both_ways), expected) << "distance " << distance;
  }
}

TEST(RelativeBias, GivesADecoderTheBucketsOfT5) {
  expect_buckets({{-300, 31}, {-112, 30}, {-98, 29}, {-86, 28}, {-76, 27}, {-66, 26}, {-58, 25}, {-51, 24},
                  {-45, 23},  {-39, 22},  {-34, 21}, {-30, 20}, {-26, 19}, {-23, 18}, {-20, 17}, {-18, 16},
                  {-15, 15},  {-14, 14},  {-13, 13}, {-12, 12}, {-11, 11}, {-10, 10}, {-9, 9},   {-8, 8},
                  {-7, 7},    {-6, 6},    {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},   {0, 0}},
                 false);
}

TEST(RelativeBias, GivesAnEncoderTheBucketsOfT5) {
  expect_buckets(
      {{-300, 15}, {-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9}, {-11, 8}, {-7, 7}, {-6, 6}, {-5, 5},
       {-4, 4},    {-3, 3},   {-2, 2},   {-1, 1},   {0, 0},    {1, 17},   {2, 18},  {3, 19},  {4, 20}, {5, 21}, {6, 22},
       {7, 23},    {8, 24},   {12, 25},  {16, 26},  {23, 27},  {32, 28},  {46, 29}, {64, 30}, {91, 31}},
      true);
}

TEST(RelativeBias, LooksUpEveryQueryAndKeyOfRowsOfDifferentLengths) {
  const at::Tensor weights = at::arange(64, at::kFloat).view({32, 2});
  const ScoreBias bias(kT5, weights, /*positions=*/64, /*both_ways=*/false);
  const StepRows rows({3, 0}, {1, 1}, 64, at::kCPU);
  const at::Tensor got = bias.of(rows, 5);
  ASSERT_EQ(got.sizes(), (at::IntArrayRef{2, 2, 1, 5}));
  const std::vector<std::vector<std::int64_t>> buckets{{3, 2, 1, 0, 0}, {0, 0, 0, 0, 0}};
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t key = 0; key < 5; ++key) {
        const std::int64_t bucket = buckets[static_cast<std::size_t>(row)][static_cast<std::size_t>(key)];
        EXPECT_EQ(got[row][head][0][key].item<float>(), static_cast<float>(2 * bucket + head));
      }
    }
  }
}

TEST(RelativeBias, OfOneTokenARowIsAViewWithTheSameNumbers) {
  const at::Tensor weights = at::arange(64, at::kFloat).view({32, 2});
  const ScoreBias bias(kT5, weights, /*positions=*/300, /*both_ways=*/false);
  const StepRows one_length({200, 200}, {1, 1}, 300, at::kCPU);
  const StepRows ragged({200, 7}, {1, 1}, 300, at::kCPU);
  const at::Tensor got = bias.of(one_length, 205);
  ASSERT_EQ(got.sizes(), (at::IntArrayRef{1, 2, 1, 205}));
  EXPECT_TRUE(at::equal(got[0], bias.of(ragged, 205)[0]));
}

}  // namespace
}  // namespace decodelab
