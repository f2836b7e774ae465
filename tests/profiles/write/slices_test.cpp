// Slices that overlap come into lanes of their own, and ends stand before begins.
#include "profiles/write/slices.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

std::vector<std::string> text_of(const std::vector<Edge>& edges) {
  std::vector<std::string> text;
  for (const Edge& edge : edges) {
    text.push_back((edge.begin ? "begin " : "end ") + std::to_string(edge.item) + " at " +
                   std::to_string(edge.time_ns));
  }
  return text;
}

TEST(Slices, ThatNestShareALane) {
  const auto lanes = lay_out(std::vector<Slice>{{0, 100, 1}, {10, 50, 2}, {50, 100, 3}});
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(text_of(lanes[0]), (std::vector<std::string>{"begin 1 at 0", "begin 2 at 10", "end 2 at 50",
                                                         "begin 3 at 50", "end 3 at 100", "end 1 at 100"}));
}

TEST(Slices, ThatOverlapWithoutNestingDoNotShareALane) {
  const auto lanes = lay_out(std::vector<Slice>{{0, 100, 1}, {99, 110, 2}, {100, 120, 3}});
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(text_of(lanes[0]),
            (std::vector<std::string>{"begin 1 at 0", "end 1 at 100", "begin 3 at 100", "end 3 at 120"}));
  EXPECT_EQ(text_of(lanes[1]), (std::vector<std::string>{"begin 2 at 99", "end 2 at 110"}));
}

TEST(Slices, OfNoLengthAreBegunBeforeTheyEnd) {
  const auto lanes = lay_out(std::vector<Slice>{{0, 10, 1}, {10, 20, 2}, {10, 10, 3}, {10, 10, 4}, {20, 20, 5}});
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(text_of(lanes[0]),
            (std::vector<std::string>{"begin 1 at 0", "end 1 at 10", "begin 2 at 10", "begin 3 at 10", "end 3 at 10",
                                      "begin 4 at 10", "end 4 at 10", "end 2 at 20", "begin 5 at 20", "end 5 at 20"}));
}

// Whatever the slices are: each lane replays as a stack, in the order of time, with every slice's own length.
TEST(Slices, OfAnyKindAreMeasuredRightInTheirLanes) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<Slice> slices;
    for (std::uint64_t item = 0; item < 40; ++item) {
      const std::int64_t start = random() % 30;
      slices.push_back({start, start + static_cast<std::int64_t>(random() % 12), item});
    }
    std::stable_sort(slices.begin(), slices.end(), in_lane_order);
    std::vector<Slice> measured;
    for (const auto& lane : lay_out(slices)) {
      std::vector<Edge> stack;
      std::int64_t now = 0;
      for (const Edge& edge : lane) {
        ASSERT_GE(edge.time_ns, now) << "seed " << seed;
        now = edge.time_ns;
        if (edge.begin) {
          stack.push_back(edge);
        } else {
          // A viewer ends the innermost, whichever was meant.
          measured.push_back({stack.back().time_ns, edge.time_ns, stack.back().item});
          stack.pop_back();
        }
      }
      ASSERT_TRUE(stack.empty());
    }
    const auto by_item = [](const Slice& a, const Slice& b) { return a.item < b.item; };
    std::sort(measured.begin(), measured.end(), by_item);
    std::sort(slices.begin(), slices.end(), by_item);
    ASSERT_EQ(measured.size(), slices.size());
    for (std::size_t i = 0; i < slices.size(); ++i) {
      EXPECT_EQ(measured[i].start_ns, slices[i].start_ns) << "seed " << seed;
      EXPECT_EQ(measured[i].end_ns, slices[i].end_ns) << "seed " << seed;
    }
  }
}

TEST(Slices, ThatNoLanesSufficeForAreRefused) {
  std::vector<Slice> slices;
  for (std::int64_t i = 0; i <= static_cast<std::int64_t>(kMostLanes); ++i) {
    slices.push_back({i, 10'000 + i, 0});
  }
  EXPECT_THROW(lay_out(slices), std::runtime_error);
  slices.pop_back();
  EXPECT_EQ(lay_out(slices).size(), kMostLanes);
}

}  // namespace
}  // namespace decodelab
