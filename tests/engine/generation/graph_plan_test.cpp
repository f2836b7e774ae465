// Buckets, parts and rules of CUDA graphs, none of which needs a GPU.
#include "engine/generation/graph_plan.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(GraphBuckets, FillBatchesUpToAPowerOfTwo) {
  const GraphBuckets buckets;
  for (const auto& [batch, rows] : {std::pair{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {129, 256}, {256, 256}}) {
    EXPECT_EQ(buckets.rows(batch), rows) << batch;
  }
  EXPECT_EQ(buckets.rows(257), 257) << "beyond the limit nothing is filled up";
  EXPECT_EQ((GraphBuckets{.most_rows = 6}).rows(5), 5) << "8 rows would be more than the limit";
  EXPECT_EQ((GraphBuckets{.most_rows = 1}).rows(3), 3);
}

TEST(GraphBuckets, RoundKeysUpToAMultipleButNeverBeyondWhatARowMayHold) {
  const GraphBuckets buckets;
  EXPECT_EQ(buckets.keys(1, 2048), 256);
  EXPECT_EQ(buckets.keys(256, 2048), 256);
  EXPECT_EQ(buckets.keys(257, 2048), 512);
  EXPECT_EQ(buckets.keys(2000, 2041), 2041);
  EXPECT_EQ(buckets.keys(2041, 2041), 2041);
}

TEST(GraphBuckets, ListEveryLengthToComeLongestFirst) {
  const GraphBuckets buckets;
  EXPECT_EQ(buckets.all_keys(300, 1000), (std::vector<std::int64_t>{1000, 768, 512}));
  EXPECT_EQ(buckets.all_keys(1000, 1000), (std::vector<std::int64_t>{1000}));
  EXPECT_TRUE(buckets.all_keys(1001, 1000).empty()) << "a full session decodes no more";
  for (std::int64_t needed = 1; needed <= 1000; ++needed) {
    const std::vector<std::int64_t> all = buckets.all_keys(1, 1000);
    EXPECT_NE(std::find(all.begin(), all.end(), buckets.keys(needed, 1000)), all.end()) << needed;
  }
}

TEST(GraphSegments, ReachFromOneAttentionToTheNext) {
  EXPECT_EQ(
      segments_around_attention(2),
      (std::vector<GraphSegment>{{.after = {}, .before = 0}, {.after = 0, .before = 1}, {.after = 1, .before = {}}}));
  EXPECT_EQ(graph_launches_of_step(GraphScope::around_attention, 24), 25);
  EXPECT_EQ(graph_launches_of_step(GraphScope::whole_step, 24), 1);
  EXPECT_EQ(segments_around_attention(24).size(), 25u);
}

TEST(GraphKey, TellsSizesApart) {
  EXPECT_EQ((GraphKey{.rows = 2, .keys = 256}), (GraphKey{.rows = 2, .keys = 256}));
  EXPECT_LT((GraphKey{.rows = 2, .keys = 256}), (GraphKey{.rows = 2, .keys = 512}));
  EXPECT_NE((GraphKey{.rows = 2, .keys = 256}), (GraphKey{.rows = 4, .keys = 256}));
}

TEST(AddressWatch, NoticesThatATensorMoved) {
  const int here = 0;
  const int there = 0;
  AddressWatch watch;
  EXPECT_FALSE(watch.moved({&here, &here})) << "nothing was recorded before";
  EXPECT_FALSE(watch.moved({&here, &here}));
  EXPECT_TRUE(watch.moved({&here, &there}));
  EXPECT_FALSE(watch.moved({&here, &there})) << "what is recorded next is for these";
  EXPECT_TRUE(watch.moved({&here}));
}

}  // namespace
}  // namespace decodelab
