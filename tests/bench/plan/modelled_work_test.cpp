// The closed forms, by hand for a model that is small enough.
#include "bench/plan/modelled_work.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "bench/plan/held_tokens.h"
#include "engine/engine.h"

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
  const ModelledWork work =
      modelled_work(tiny(), {.phase = Phase::decode, .batch = 3, .length = 5, .dtype = "bf16"}, 2);
  EXPECT_EQ(work.weight_bytes, 2 * 2 * (kMatrices + kVectors + kHead + 2 * 3 * 4));
  EXPECT_EQ(work.kv_bytes, 2 * 3 * 4 * (6 + 7));
  EXPECT_EQ(work.flops, 2 * 2 * (3 * kMatrices + 3 * kHead) + 4 * 4 * 3 * (6 + 7));
}

TEST(ModelledWork, OfPrefillAttendsCausallyAndHasOneHeadRowForEachPrompt) {
  const ModelledWork work =
      modelled_work(tiny(), {.phase = Phase::prefill, .batch = 2, .length = 3, .dtype = "fp32"}, 1);
  EXPECT_EQ(work.weight_bytes, 4 * (kMatrices + kVectors + kHead + 2 * 6 * 4));
  EXPECT_EQ(work.kv_bytes, 4 * 2 * 4 * 3);
  EXPECT_EQ(work.flops, 2 * (6 * kMatrices + 2 * kHead) + 4 * 4 * 2 * 6);
}

TEST(ModelledWork, OfStagesAddsUpToThatOfTheStep) {
  ModelConfig config = tiny();
  config.layers = 3;
  for (const Phase phase : {Phase::decode, Phase::prefill}) {
    const CellRecord cell{.phase = phase, .batch = 3, .length = 5, .dtype = "bf16"};
    const ModelledWork work = modelled_work(config, cell, 1);
    const StageBytes bytes = modelled_stage_bytes(config, cell, cell.length);
    std::int64_t total = std::accumulate(bytes.outside.begin(), bytes.outside.end(), std::int64_t{0});
    for (const StageBytes::ByStage& layer : bytes.layers) {
      total = std::accumulate(layer.begin(), layer.end(), total);
    }
    EXPECT_EQ(total, work.weight_bytes + work.kv_bytes) << to_string(phase);
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
  const ModelledWork work =
      modelled_work(config, {.phase = Phase::decode, .batch = 3, .length = 5, .dtype = "bf16"}, 1);
  const std::int64_t matrices = 4 * (12 + 6 + 6) + 12 * 4 + 4 * 16 + 8 * 4;
  EXPECT_EQ(work.weight_bytes, 2 * (2 * (matrices + 2 * 4) + 4 + 4 * 10 + 3 * 4))
      << "a token is looked up in one table";
  EXPECT_EQ(work.kv_bytes, 2 * 2 * 3 * 12 * 6);
  EXPECT_EQ(work.flops, 2 * (3 * 2 * matrices + 3 * 40) + 4 * 12 * 2 * 3 * 6);
}

/// What the queries of one row see, counted one by one.
std::pair<std::int64_t, std::int64_t> seen(std::int64_t tokens, std::int64_t past, std::int64_t window) {
  std::set<std::int64_t> keys;
  std::int64_t pairs = 0;
  for (std::int64_t query = past; query < past + tokens; ++query) {
    for (std::int64_t key = std::max<std::int64_t>(0, query - window + 1); key <= query; ++key) {
      keys.insert(key);
      ++pairs;
    }
  }
  return {std::ssize(keys), pairs};
}

TEST(ModelledWork, ReadsOfAWindowNoMoreThanItsKeys) {
  ModelConfig config = tiny();
  config.layers = 2;
  for (const std::int64_t window : {1, 3, 5, 6, 7, 100}) {
    for (const Phase phase : {Phase::decode, Phase::prefill}) {
      const CellRecord cell{.phase = phase, .batch = 3, .length = 5, .dtype = "bf16"};
      config.recipes.clear();
      const ModelledWork full = modelled_work(config, cell, 1);
      config.recipes = {{.window = window}, {}};
      const ModelledWork work = modelled_work(config, cell, 1);
      const bool decode = cell.phase == Phase::decode;
      const auto [keys, pairs] = seen(decode ? 1 : 5, decode ? 5 : 0, window);
      const auto [all_keys, all_pairs] = seen(decode ? 1 : 5, decode ? 5 : 0, 100);
      EXPECT_EQ(full.kv_bytes - work.kv_bytes, 2 * 3 * 4 * (all_keys - keys)) << to_string(phase) << ' ' << window;
      EXPECT_EQ(full.flops - work.flops, 4 * 3 * 4 * (all_pairs - pairs)) << to_string(phase) << ' ' << window;
    }
  }
}

/// An encoder of 3 layers and a decoder of 2, d 4, 2 heads of 3, a plain MLP of 8, buckets 8, vocabulary 10.
TEST(ModelledWork, OfAnEncoderIsThePrefillsAlone) {
  ModelConfig config;
  config.family = "t5";
  config.positions = 64;
  config.layers = 2;
  config.hidden_size = 4;
  config.heads = config.kv_heads = 2;
  config.head_dim = 3;
  config.intermediate_size = 8;
  config.vocabulary_size = 10;
  config.norm = NormKind::rms;
  config.relative_bias = {.buckets = 8, .most_distance = 16};
  config.encoder = {.layers = 3};
  const std::int64_t attention = 4 * 18 + 6 * 4;  // qkv, out
  const std::int64_t mlp = 2 * 4 * 8;
  const std::int64_t cross_keys = 4 * 12;
  const std::int64_t decoder = attention + 4 * 6 + 6 * 4 + mlp;  // with the queries and the output of cross-attention
  const std::int64_t outside = 4 + 8 * 2 + 4 * 10;               // last norm, bias, head
  const ModelledWork decode =
      modelled_work(config, {.phase = Phase::decode, .batch = 3, .length = 5, .dtype = "bf16"}, 1);
  EXPECT_EQ(decode.weight_bytes, 2 * (2 * (decoder + 3 * 4) + outside + 3 * 4));
  EXPECT_EQ(decode.kv_bytes, 2 * 3 * 12 * 2 * (kHeldByDecoder + 1 + 5));
  EXPECT_EQ(decode.flops, 2 * 3 * (2 * decoder + 40) + 4 * 6 * 2 * 3 * (kHeldByDecoder + 1 + 5));

  const ModelledWork later =
      modelled_work(config, {.phase = Phase::decode, .batch = 3, .length = 5, .dtype = "bf16", .fill = "random:20"}, 1);
  EXPECT_EQ(later.kv_bytes, 2 * 3 * 12 * 2 * (20 + 1 + 5));

  const ModelledWork prefill =
      modelled_work(config, {.phase = Phase::prefill, .batch = 3, .length = 5, .dtype = "bf16"}, 1);
  const std::int64_t encoder = 3 * (attention + mlp + 2 * 4) + 4 + 8 * 2;
  EXPECT_EQ(prefill.weight_bytes, 2 * (2 * (decoder + 3 * 4) + outside + encoder + 2 * cross_keys + 3 * (1 + 5) * 4));
  EXPECT_EQ(prefill.kv_bytes, 2 * 3 * 12 * 2 * (1 + 5));
  EXPECT_EQ(prefill.flops, 2 * 3 * (2 * decoder + 40) + 2 * 15 * (3 * (attention + mlp) + 2 * cross_keys) +
                               4 * 6 * (2 * 3 * (1 + 5) + 3 * 3 * 5 * 5));
}

}  // namespace
}  // namespace decodelab
