// The closed forms, by hand for a model that is small enough.
#include "bench/plan/modelled_work.h"

#include <numeric>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

/// 1 layer, d 4, 2 heads of 2, one key-value head (W 4), inner 8, vocabulary 10.
ModelConfig tiny() {
  ModelConfig config;
  config.family = "gpt_bigcode";
  config.positions = 16;
  config.layers = 1;
  config.hidden_size = 4;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 2;
  config.intermediate_size = 8;
  config.vocabulary_size = 10;
  return config;
}
constexpr std::int64_t kMatrices = 4 * (4 + 4) + 4 * 4 + 2 * 4 * 8;     // qkv, projection, mlp
constexpr std::int64_t kVectors = (4 + 4) + 4 + 8 + 4 + 4 * 4 + 2 * 4;  // biases, two norms, the last norm
constexpr std::int64_t kHead = 4 * 10;

TEST(ModelledWork, OfDecodeReadsWeightsOnceAndKeysOfEveryRow) {
  const ModelledWork work = modelled_work(tiny(), {.phase = "decode", .batch = 3, .length = 5, .dtype = "bf16"}, 2);
  EXPECT_EQ(work.weight_bytes, 2 * 2 * (kMatrices + kVectors + kHead + 2 * 3 * 4));
  EXPECT_EQ(work.kv_bytes, 2 * 3 * 4 * (6 + 7));
  EXPECT_EQ(work.flops, 2 * 2 * (3 * kMatrices + 3 * kHead) + 4 * 4 * 3 * (6 + 7));
}

TEST(ModelledWork, OfPrefillAttendsCausallyAndHasOneHeadRowForEachPrompt) {
  const ModelledWork work = modelled_work(tiny(), {.phase = "prefill", .batch = 2, .length = 3, .dtype = "fp32"}, 1);
  EXPECT_EQ(work.weight_bytes, 4 * (kMatrices + kVectors + kHead + 2 * 6 * 4));
  EXPECT_EQ(work.kv_bytes, 4 * 2 * 4 * 3);
  EXPECT_EQ(work.flops, 2 * (6 * kMatrices + 2 * kHead) + 4 * 4 * 2 * 6);
}

TEST(ModelledWork, OfStagesAddsUpToThatOfTheStep) {
  ModelConfig config = tiny();
  config.layers = 3;
  for (const char* phase : {"decode", "prefill"}) {
    const CellRecord cell{.phase = phase, .batch = 3, .length = 5, .dtype = "bf16"};
    const ModelledWork work = modelled_work(config, cell, 1);
    const StageBytes bytes = modelled_stage_bytes(config, cell, cell.length);
    const std::int64_t in_layer = std::accumulate(bytes.in_layer.begin(), bytes.in_layer.end(), std::int64_t{0});
    const std::int64_t outside = std::accumulate(bytes.outside.begin(), bytes.outside.end(), std::int64_t{0});
    EXPECT_EQ(config.layers * in_layer + outside, work.weight_bytes + work.kv_bytes) << phase;
  }
}

/// 2 layers, d 4, 4 heads of 3 that share 2 key heads, a gated MLP, a head of its own, no biases.
TEST(ModelledWork, OfALlamaCountsKeyHeadsBothHalvesOfTheGateAndItsOwnHead) {
  ModelConfig config;
  config.family = "llama";
  config.layers = 2;
  config.hidden_size = 4;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 3;
  config.intermediate_size = 8;
  config.vocabulary_size = 10;
  config.gated_mlp = true;
  config.tied_head = false;
  const ModelledWork work = modelled_work(config, {.phase = "decode", .batch = 3, .length = 5, .dtype = "bf16"}, 1);
  const std::int64_t matrices = 4 * (12 + 6 + 6) + 12 * 4 + 4 * 16 + 8 * 4;
  EXPECT_EQ(work.weight_bytes, 2 * (2 * (matrices + 2 * 4) + 4 + 4 * 10 + 3 * 4))
      << "a token is looked up in one table";
  EXPECT_EQ(work.kv_bytes, 2 * 2 * 3 * 12 * 6);
  EXPECT_EQ(work.flops, 2 * (3 * 2 * matrices + 3 * 40) + 4 * 12 * 2 * 3 * 6);
}

}  // namespace
}  // namespace decodelab
