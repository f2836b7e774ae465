// Buckets, parts and rules of CUDA graphs, none of which needs a GPU.
#include "engine/generation/graph_plan.h"

#include "engine/plan.h"

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

/// A plan with these variants bound, to nothing.
EnginePlan plan_with(const std::string& forward, const std::string& growth = "", const std::string& attention = "",
                     const std::string& padding = "") {
  EnginePlan plan;
  const auto bind = [](auto& slot, const std::string& variant) {
    if (!variant.empty()) {
      slot.bind(variant, {});
    }
  };
  bind(plan.forward, forward);
  bind(plan.kv_growth, growth);
  bind(plan.decode_attention, attention);
  bind(plan.key_padding, padding);
  return plan;
}

TEST(GraphConflict, AcceptsWhatStaysWhereItIs) {
  for (const char* growth : {"kv-static", "kv-preallocated"}) {
    for (const char* attention : {"", "split-kv-decode"}) {
      EXPECT_EQ(graph_conflict("cuda-graph", GraphScope::whole_step, plan_with("workspace-forward", growth, attention)),
                "");
    }
  }
  EXPECT_EQ(graph_conflict("cuda-graph-partial", GraphScope::around_attention,
                           plan_with("workspace-forward", "kv-grow", "flash-decode", "padded-keys")),
            "")
      << "attention and cache are outside of the graphs";
}

TEST(GraphConflict, NamesBothSidesInOneSentence) {
  struct Case {
    EnginePlan plan;
    GraphScope scope;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases{
      {plan_with("", "kv-static"), GraphScope::whole_step, {"reference's forward", "add workspace-forward"}},
      {plan_with("lean-forward", "kv-static"), GraphScope::whole_step, {"lean-forward", "add workspace-forward"}},
      {plan_with("lean-forward"), GraphScope::around_attention, {"lean-forward", "add workspace-forward"}},
      {plan_with("workspace-forward"), GraphScope::whole_step, {"concatenated cache", "add kv-static"}},
      {plan_with("workspace-forward", "kv-grow"), GraphScope::whole_step, {"kv-grow", "add kv-static"}},
      {plan_with("workspace-forward", "kv-static", "flash-decode"),
       GraphScope::whole_step,
       {"flash-decode", "depend on the key length"}},
      {plan_with("workspace-forward", "kv-static", "cudnn-decode"),
       GraphScope::whole_step,
       {"cudnn-decode", "depend on the key length"}},
      {plan_with("workspace-forward", "kv-static", "", "padded-keys"),
       GraphScope::whole_step,
       {"padded-keys", "no effect"}},
  };
  for (const Case& one : cases) {
    const std::string reason = graph_conflict("the-graph", one.scope, one.plan);
    EXPECT_EQ(reason.find("the-graph "), 0u) << reason;
    EXPECT_EQ(reason.find('.'), std::string::npos) << "more than a sentence: " << reason;
    for (const std::string& word : one.words) {
      EXPECT_NE(reason.find(word), std::string::npos) << word << " in: " << reason;
    }
  }
}

}  // namespace
}  // namespace decodelab
