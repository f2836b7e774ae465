// What a rank goes through, as its log has it.
#include "engine/ranks/rank_ranges.h"

#include <memory>

#include <gtest/gtest.h>
#include <unistd.h>

namespace decodelab {
namespace {

/// Two layers' worth of nested ranges, and a stage outside of them.
void go_through_layers(std::int64_t layers) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerRange in_layer(layer);
    const Range mlp(Stage::mlp);
    const Range sum(Stage::all_reduce);
  }
  const Range head(Stage::head);
}

TEST(RankRanges, LayersAndStagesAreNotedWithTheirTimesAsTheyEnd) {
  const auto log = std::make_unique<RangeLog>();
  {
    const RangeRecorder recorder(*log);
    go_through_layers(2);
  }
  const RankRecord record = read_log(*log, 3);
  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.process, getpid());
  EXPECT_EQ(record.dropped, 0);
  ASSERT_EQ(record.ranges.size(), 7U);
  const RankRange& sum = record.ranges[3];
  const RankRange& mlp = record.ranges[4];
  const RankRange& layer = record.ranges[5];
  EXPECT_EQ(sum.stage, Stage::all_reduce);
  EXPECT_EQ(sum.layer, 1);
  EXPECT_EQ(mlp.stage, Stage::mlp);
  EXPECT_TRUE(layer.is_layer);
  EXPECT_EQ(layer.layer, 1);
  EXPECT_LE(layer.start_ns, mlp.start_ns);
  EXPECT_LE(mlp.start_ns, sum.start_ns);
  EXPECT_LE(sum.start_ns, sum.end_ns);
  EXPECT_LE(sum.end_ns, mlp.end_ns);
  EXPECT_LE(mlp.end_ns, layer.end_ns);
  EXPECT_EQ(record.ranges[6].stage, Stage::head);
  EXPECT_EQ(record.ranges[6].layer, -1);
}

TEST(RankRanges, NothingIsNotedOnceTheRecorderHasGone) {
  const auto log = std::make_unique<RangeLog>();
  {
    const RangeRecorder recorder(*log);
    go_through_layers(1);
  }
  EXPECT_EQ(range_listener, nullptr);
  go_through_layers(5);
  EXPECT_EQ(read_log(*log, 1).ranges.size(), 4U);
}

TEST(RankRanges, AnotherRecordingBeginsAnew) {
  const auto log = std::make_unique<RangeLog>();
  for (const std::int64_t layers : {4, 1}) {
    const RangeRecorder recorder(*log);
    go_through_layers(layers);
  }
  EXPECT_EQ(read_log(*log, 1).ranges.size(), 4U);
}

TEST(RankRanges, WhatFindsNoRoomIsCounted) {
  const auto log = std::make_unique<RangeLog>();
  {
    const RangeRecorder recorder(*log);
    for (std::size_t range = 0; range < RangeLog::kMost + 5; ++range) {
      const Range in_stage(Stage::norm);
    }
  }
  const RankRecord record = read_log(*log, 1);
  EXPECT_EQ(record.ranges.size(), RangeLog::kMost);
  EXPECT_EQ(record.dropped, 5);
}

}  // namespace
}  // namespace decodelab
