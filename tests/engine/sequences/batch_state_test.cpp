// The parts of a batch's state that no variant replaces.
#include "engine/sequences/batch_state.h"

#include <set>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(ForkSeed, DiffersForEverySampleOfEverySeed) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (std::uint64_t sample = 0; sample < 100; ++sample) {
      seeds.insert(fork_seed(seed, sample));
      EXPECT_LT(fork_seed(seed, sample), std::uint64_t{1} << 53) << "or a reader of JSON would round it";
    }
  }
  EXPECT_EQ(seeds.size(), 10'000U);
  EXPECT_EQ(fork_seed(3, 4), fork_seed(3, 4));
}

TEST(RowTensor, KeepsAndJoinsRowsAndHasNoneWhereASideHasNone) {
  RowTensor mine;
  mine.select({0, 0});
  EXPECT_FALSE(mine.value.defined());
  mine.value = at::arange(3, at::kLong).unsqueeze(1);
  mine.select({2, 0, 2});
  EXPECT_TRUE(at::equal(mine.value, at::tensor({2, 0, 2}, at::kLong).unsqueeze(1)));
  RowTensor other;
  other.value = at::tensor({7}, at::kLong).unsqueeze(1);
  mine.append(other);
  EXPECT_TRUE(at::equal(mine.value, at::tensor({2, 0, 2, 7}, at::kLong).unsqueeze(1)));
  RowTensor none;
  mine.append(none);
  EXPECT_FALSE(mine.value.defined());
}

TEST(RowValues, KeepsAndJoinsRows) {
  RowValues<int> mine;
  mine.values = {4, 5, 6};
  mine.select({1, 1, 0});
  RowValues<int> other;
  other.values = {9};
  mine.append(other);
  EXPECT_EQ(mine.values, (std::vector<int>{5, 5, 4, 9}));
}

}  // namespace
}  // namespace decodelab
