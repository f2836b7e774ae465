// Tests that the orders of blocks are mirror images, uniform, and a function of their keys alone.
#include "bench/measure/block_order.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

using Order = std::vector<std::size_t>;

TEST(BlockOrder, IsItsOwnMirrorImage) {
  for (std::size_t arms = 1; arms <= 12; ++arms) {
    for (std::uint64_t block = 0; block < 20; ++block) {
      const Order order = mirrored_order(arms, 1, 2, 3, block);
      EXPECT_EQ(order, Order(order.rbegin(), order.rend()));
    }
  }
}

TEST(BlockOrder, VisitsEachArmTwice) {
  for (std::size_t arms = 0; arms <= 12; ++arms) {
    Order order = mirrored_order(arms, 1, 2, 3, 4);
    std::sort(order.begin(), order.end());
    Order expected;
    for (std::size_t arm = 0; arm < arms; ++arm) {
      expected.insert(expected.end(), {arm, arm});
    }
    EXPECT_EQ(order, expected);
  }
}

TEST(BlockOrder, IsTheSameInEveryBuild) {
  EXPECT_EQ(mirrored_order(5, 1, 2, 3, 4), mirrored_order(5, 1, 2, 3, 4));
  // Worked out apart, in Python: a resumed run needs the orders that it was planned with.
  EXPECT_EQ(mirrored_order(5, 1, 2, 3, 4), Order({3, 4, 1, 0, 2, 2, 0, 1, 4, 3}));
}

/// Draws 24,000 orders of 3 arms, number i from `draw(i)`, and expects each of the 6 within 5 sigma of its share.
template <typename Draw>
void expect_uniform(Draw draw) {
  constexpr int kDraws = 24'000;
  std::map<Order, int> counts;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    ++counts[draw(i)];
  }
  ASSERT_EQ(counts.size(), 6U);
  const double expected = kDraws / 6.0;
  const double sigma = std::sqrt(expected * 5.0 / 6.0);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, expected, 5 * sigma) << order[0] << order[1] << order[2];
  }
}

TEST(BlockOrder, IsUniformOverSeeds) {
  expect_uniform([](std::uint64_t i) { return mirrored_order(3, i, 0, 0, 0); });
}
TEST(BlockOrder, IsUniformOverCells) {
  expect_uniform([](std::uint64_t i) { return mirrored_order(3, 1, i, 0, 0); });
}
TEST(BlockOrder, IsUniformOverLaunches) {
  expect_uniform([](std::uint64_t i) { return mirrored_order(3, 1, 0, i, 0); });
}
TEST(BlockOrder, IsUniformOverBlocks) {
  expect_uniform([](std::uint64_t i) { return mirrored_order(3, 1, 0, 0, i); });
}
TEST(BlockOrder, IsUniformOverAWholeRun) {
  expect_uniform([](std::uint64_t i) { return mirrored_order(3, 1, i % 40, i / 40 % 20, i / 800); });
}

TEST(BlockOrder, ChangesWithEachKey) {
  constexpr int kBlocks = 60;
  const auto equal_orders = [](std::uint64_t seed, std::uint64_t cell, std::uint64_t launch, std::uint64_t shift) {
    int equal = 0;
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      equal += mirrored_order(3, 1, 2, 3, block) == mirrored_order(3, seed, cell, launch, block + shift) ? 1 : 0;
    }
    return equal;
  };
  EXPECT_EQ(equal_orders(1, 2, 3, 0), kBlocks);
  // Unrelated orders agree in a sixth of the blocks: 10, and 5 sigma more are 24.
  EXPECT_LT(equal_orders(9, 2, 3, 0), 25);
  EXPECT_LT(equal_orders(1, 9, 3, 0), 25);
  EXPECT_LT(equal_orders(1, 2, 9, 0), 25);
  EXPECT_LT(equal_orders(1, 2, 3, 1), 25);
  EXPECT_LT(equal_orders(2, 1, 3, 0), 25) << "keys are not interchangeable";
  EXPECT_LT(equal_orders(1, 3, 2, 0), 25) << "keys are not interchangeable";
}

}  // namespace
}  // namespace decodelab
