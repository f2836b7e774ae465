// Sizes of launches: every key, row and head is some thread's, whatever the shape.
#include "engine/kernels/device_kernels.h"

#include <bit>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr std::int64_t kProcessorsOfA100 = 108;

bool is_power_of_two(std::int64_t value) { return std::has_single_bit(static_cast<std::uint64_t>(value)); }

TEST(BlockSoftmaxLaunch, ReadsVectorsOnlyWhereEveryRowIsAligned) {
  EXPECT_EQ(block_softmax_launch(10, 2048, DeviceElement::float16, 0x1000).in_vector, 8);
  EXPECT_EQ(block_softmax_launch(10, 2048, DeviceElement::float32, 0x1000).in_vector, 4);
  EXPECT_EQ(block_softmax_launch(10, 2047, DeviceElement::float16, 0x1000).in_vector, 1) << "rows start anywhere";
  EXPECT_EQ(block_softmax_launch(10, 2044, DeviceElement::bfloat16, 0x1000).in_vector, 1) << "8 bytes are left over";
  EXPECT_EQ(block_softmax_launch(10, 2048, DeviceElement::float16, 0x1008).in_vector, 1) << "the first row is askew";
}

TEST(BlockSoftmaxLaunch, HasWholeWarpsAndABlockARow) {
  for (const std::int64_t keys : {1, 8, 31, 33, 255, 2048, 8192, 100000}) {
    const SoftmaxLaunch launch = block_softmax_launch(77, keys, DeviceElement::bfloat16, 0);
    EXPECT_EQ(launch.blocks, 77);
    EXPECT_EQ(launch.threads % kWarpThreads, 0) << keys;
    EXPECT_LE(launch.threads, 1024) << keys;
  }
}

TEST(WarpSoftmaxLaunch, KeepsARowInRegistersUpToTheLimit) {
  for (std::int64_t keys = 1; keys <= kMostWarpKeys; ++keys) {
    const SoftmaxLaunch launch = warp_softmax_launch(9, keys);
    ASSERT_TRUE(is_power_of_two(launch.per_lane)) << keys;
    ASSERT_GE(launch.per_lane * kWarpThreads, keys);
    ASSERT_LE(launch.per_lane, 64);
  }
  EXPECT_EQ(warp_softmax_launch(9, kMostWarpKeys + 1).per_lane, 0) << "such a row is read twice";
}

TEST(WarpSoftmaxLaunch, HasAWarpForEveryRow) {
  for (const std::int64_t rows : {1, 3, 4, 5, 4096}) {
    const SoftmaxLaunch launch = warp_softmax_launch(rows, 100);
    EXPECT_GE(launch.blocks * launch.threads / kWarpThreads, rows);
    EXPECT_LT((launch.blocks - 1) * launch.threads / kWarpThreads, rows) << "no block is idle";
  }
}

TEST(NormLaunch, ReadsVectorsOnlyWhereAllTensorsAreAligned) {
  EXPECT_EQ(norm_launch(4, 2048, DeviceElement::float16, 0x100).in_vector, 8);
  EXPECT_EQ(norm_launch(4, 2048, DeviceElement::float16, 0x100 | 0x2).in_vector, 1);
  EXPECT_EQ(norm_launch(4, 44, DeviceElement::float16, 0x100).in_vector, 1);
  EXPECT_EQ(norm_launch(4, 6144, DeviceElement::float32, 0).threads, 1024);
  EXPECT_EQ(norm_launch(4, 48, DeviceElement::float32, 0).threads, kWarpThreads);
}

TEST(DecodeLaunch, CoversAllKeysWithSplitsOfWholeTiles) {
  for (const std::int64_t batch : {1, 8, 256}) {
    for (const std::int64_t heads : {1, 16}) {
      for (std::int64_t keys = 1; keys <= 8192; keys += 13) {
        const DecodeLaunch launch = decode_launch(batch, heads, 16, 128, keys, kProcessorsOfA100);
        ASSERT_EQ(launch.split_keys % kTileKeys, 0);
        ASSERT_GE(launch.split_keys * launch.splits, keys);
        ASSERT_LT(launch.split_keys * (launch.splits - 1), keys) << "no split is empty";
        ASSERT_LE(launch.splits, kMostSplits);
      }
    }
  }
}

TEST(DecodeLaunch, SplitsASingleRowAmongAllProcessorsAndALargeBatchNotAtAll) {
  EXPECT_GE(decode_launch(1, 1, 16, 128, 8192, kProcessorsOfA100).splits, kProcessorsOfA100);
  EXPECT_EQ(decode_launch(256, 1, 16, 128, 2048, kProcessorsOfA100).splits, 1);
  EXPECT_EQ(decode_launch(1, 1, 16, 128, 20, kProcessorsOfA100).splits, 1) << "one tile cannot be split";
}

TEST(DecodeLaunch, GivesEveryHeadAndColumnToOneThread) {
  for (const std::int64_t head_dim : {1, 12, 16, 64, 80, 96, 128, 256}) {
    for (const std::int64_t shared : {1, 3, 16, 48}) {
      if (!decode_shape_refused(shared, head_dim).empty()) {
        continue;
      }
      const DecodeLaunch launch = decode_launch(2, 1, shared, head_dim, 100, kProcessorsOfA100);
      EXPECT_TRUE(is_power_of_two(launch.columns));
      EXPECT_GE(launch.columns, head_dim);
      EXPECT_TRUE(is_power_of_two(launch.heads_of_thread));
      EXPECT_LE(launch.heads_of_thread, kMostHeadsOfAThread);
      EXPECT_GE(kAttentionThreads / launch.columns * launch.heads_of_thread, shared) << head_dim;
      EXPECT_LE(launch.shared_bytes, kMostSharedBytes);
    }
  }
}

TEST(VerifyLaunch, TakesAllQueriesThatABlockHasRoomForAndKeepsTheSplitsOfAStep) {
  const DecodeLaunch step = decode_launch(1, 1, 16, 128, 2000, kProcessorsOfA100);
  EXPECT_EQ(step.queries, 1);
  const DecodeLaunch eight = verify_launch(step, 16, 128, 8);
  EXPECT_EQ(eight.queries, 8) << "128 heads, 64 for each thread of 256 over 128 columns";
  EXPECT_EQ(eight.heads_of_thread, 64);
  EXPECT_EQ(verify_launch(step, 16, 128, 9).queries, 5) << "two blocks share them";
  EXPECT_EQ(verify_launch(step, 48, 128, 8).queries, 2);
  EXPECT_EQ(verify_launch(step, 1, 64, 1).queries, 1);
  for (const std::int64_t queries : {1, 2, 8, 17, 64}) {
    const DecodeLaunch launch = verify_launch(step, 16, 128, queries);
    EXPECT_EQ(launch.splits, step.splits);
    EXPECT_EQ(launch.split_keys, step.split_keys);
    EXPECT_LE(launch.shared_bytes, kMostSharedBytes);
    EXPECT_LE(launch.heads_of_thread, kMostHeadsOfAThread);
  }
}

TEST(DecodeLaunch, TakesTheModelsOfTheStudyWithinTheSharedMemoryThatComesUnasked) {
  EXPECT_EQ(decode_shape_refused(16, 128), "") << "SantaCoder";
  EXPECT_EQ(decode_shape_refused(48, 128), "") << "StarCoder";
  EXPECT_LE(decode_launch(1, 1, 48, 128, 8192, kProcessorsOfA100).shared_bytes, 48 * 1024);
}

TEST(DecodeLaunch, RefusesHeadsThatTheKernelHasNoRoomFor) {
  EXPECT_NE(decode_shape_refused(1, 257).find("257"), std::string::npos);
  EXPECT_NE(decode_shape_refused(65, 256).find("at most 64 query heads"), std::string::npos);
  EXPECT_NE(decode_shape_refused(400, 64).find("400"), std::string::npos);
}

TEST(DevicePartials, HoldTheMaximumTheSumAndTheValuesOfEachHeadOfEachSplit) {
  EXPECT_EQ(device_partial_floats(2, 3, 4, 128, 5), 2 * 3 * 5 * 4 * (128 + 2));
}

}  // namespace
}  // namespace decodelab
