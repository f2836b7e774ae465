// Events are the same however their bytes are cut, and each knows where it ended.
#include "bench/measure/serving/event_stream.h"

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/mutator.h"

namespace decodelab {
namespace {

std::vector<std::string> data_of(const EventStream& stream) {
  std::vector<std::string> data;
  for (const StreamEvent& event : stream.events()) {
    data.push_back(event.data);
  }
  return data;
}

const std::string kStream =
    ": ping\r\n\r\ndata: one\r\n\r\nevent: x\ndata:two\ndata:  three\n\nid: 7\n\nretry: 1\rdata\r\r";
const std::vector<std::string> kData{"one", "two\n three", ""};

TEST(EventStream, IsTheSameWhereverItIsCut) {
  for (std::size_t first = 0; first <= kStream.size(); ++first) {
    for (std::size_t second = first; second <= kStream.size(); second += 3) {
      EventStream stream;
      stream.feed(kStream.substr(0, first));
      stream.feed(kStream.substr(first, second - first));
      stream.feed(kStream.substr(second));
      EXPECT_EQ(data_of(stream), kData) << first << " " << second;
      EXPECT_FALSE(stream.within_event());
    }
  }
  EventStream bytewise;
  for (const char c : kStream) {
    bytewise.feed(std::string(1, c));
  }
  EXPECT_EQ(data_of(bytewise), kData);
}

TEST(EventStream, KnowsHowManyBytesHadComeWhenAnEventWasComplete) {
  EventStream stream;
  stream.feed("data: a\n\ndata: bc\n\n");
  ASSERT_EQ(stream.events().size(), 2U);
  EXPECT_EQ(stream.events()[0].end, 9U);
  EXPECT_EQ(stream.events()[1].end, 19U);
}

TEST(EventStream, SaysWhetherAnEventIsUnderWay) {
  EventStream stream;
  stream.feed("data: a\n");
  EXPECT_TRUE(stream.within_event());
  EXPECT_TRUE(stream.events().empty());
  stream.feed("\nda");
  EXPECT_TRUE(stream.within_event());
  EXPECT_EQ(data_of(stream), std::vector<std::string>{"a"});
}

TEST(EventStream, IsTheSameInRandomPieces) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    Mutator random(round);
    EventStream stream;
    for (std::size_t at = 0; at < kStream.size();) {
      const std::size_t length = 1 + random.below(9);
      stream.feed(std::string_view(kStream).substr(at, length));
      at += length;
    }
    EXPECT_EQ(data_of(stream), kData);
  }
}

}  // namespace
}  // namespace decodelab
