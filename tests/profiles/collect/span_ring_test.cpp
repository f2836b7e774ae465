// The ring of spans: order, room, and drops that are counted exactly, with the two ends on one thread and on two.
#include "profiles/collect/span_ring.h"

#include <thread>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(SpanRing, GivesBackWhatCameInItsOrder) {
  SpanRing ring(4);
  for (std::int64_t index = 0; index < 3; ++index) {
    ring.push({.start_ns = index});
  }
  SpanRecord record;
  for (std::int64_t index = 0; index < 3; ++index) {
    ASSERT_TRUE(ring.pop(record));
    EXPECT_EQ(record.start_ns, index);
  }
  EXPECT_FALSE(ring.pop(record));
}

TEST(SpanRing, KeepsTheOldestWhenItIsFullAndCountsTheRest) {
  SpanRing ring(5);
  ASSERT_EQ(ring.capacity(), 8U);
  for (std::int64_t index = 0; index < 21; ++index) {
    ring.push({.start_ns = index});
  }
  EXPECT_EQ(ring.dropped(), 13);
  SpanRecord record;
  for (std::int64_t index = 0; index < 8; ++index) {
    ASSERT_TRUE(ring.pop(record));
    EXPECT_EQ(record.start_ns, index);
  }
  EXPECT_FALSE(ring.pop(record));
  ring.push({.start_ns = 99});
  ASSERT_TRUE(ring.pop(record));
  EXPECT_EQ(record.start_ns, 99);
  EXPECT_EQ(ring.dropped(), 13);
}

TEST(SpanRing, LosesNothingUncountedBetweenTwoThreads) {
  constexpr std::int64_t kRecords = 200'000;
  SpanRing ring(64);
  std::atomic<bool> done{false};
  std::int64_t taken = 0;
  std::int64_t last = -1;
  std::thread consumer([&] {
    SpanRecord record;
    const auto take = [&] {
      while (ring.pop(record)) {
        EXPECT_GT(record.start_ns, last);
        EXPECT_EQ(record.end_ns, record.start_ns + 1);
        last = record.start_ns;
        ++taken;
      }
    };
    while (!done) {
      take();
    }
    take();
  });
  for (std::int64_t index = 0; index < kRecords; ++index) {
    ring.push({.start_ns = index, .end_ns = index + 1});
  }
  done = true;
  consumer.join();
  EXPECT_EQ(taken + ring.dropped(), kRecords);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace decodelab
