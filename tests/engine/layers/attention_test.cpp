// The reference of attention against loops that anyone can check.
#include "engine/layers/attention.h"

#include <gtest/gtest.h>

#include "engine/layers/softmax.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

/// Softmax(q . k / sqrt(k)) . v by loops in double.
at::Tensor naive(const ModelConfig& config, const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                 const StepRows& rows) {
  const std::int64_t B = query.size(0);
  const std::int64_t T = query.size(1);
  const std::int64_t k = config.head_dim;
  const std::int64_t R = config.heads / config.kv_heads;
  const at::Tensor result = at::zeros({B, T, config.heads * k}, at::kDouble);
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t head = 0; head < config.heads; ++head) {
        const std::int64_t seen = std::min(rows.past()[static_cast<std::size_t>(b)] + t + 1, keys.size(1));
        const at::Tensor q = query[b][t].narrow(0, head * k, k).to(at::kDouble);
        const at::Tensor K = keys[b].narrow(0, 0, seen).narrow(1, head / R * k, k).to(at::kDouble);
        const at::Tensor V = values[b].narrow(0, 0, seen).narrow(1, head / R * k, k).to(at::kDouble);
        const at::Tensor weights = at::softmax(at::mv(K, q) / std::sqrt(static_cast<double>(k)), 0);
        result[b][t].narrow(0, head * k, k).copy_(at::mv(V.t(), weights));
      }
    }
  }
  return result;
}

void expect_naive(const ModelConfig& config, std::vector<std::int64_t> past, std::vector<std::int64_t> added,
                  at::ScalarType dtype, double limit) {
  const StepRows rows(std::move(past), std::move(added), config.positions, at::kCPU);
  const std::int64_t B = rows.batch_size();
  const at::Tensor query = at::randn({B, rows.tokens(), config.hidden_size}).to(dtype);
  const at::Tensor keys = at::randn({B, rows.keys(), config.kv_heads * config.head_dim}).to(dtype);
  const at::Tensor values = at::randn({B, rows.keys(), config.kv_heads * config.head_dim}).to(dtype);
  PlainWorkspace workspace;
  const auto attention = make_math_attention(attention_shape(config), make_unfused_softmax);
  const at::Tensor got = attention->forward(
      {.layer = 3, .query = query, .keys = keys, .values = values, .rows = rows, .workspace = workspace});
  ASSERT_EQ(got.scalar_type(), dtype);
  const at::Tensor expected = naive(config, query, keys, values, rows);
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t real = rows.added()[static_cast<std::size_t>(b)];
    const double difference =
        (got[b].narrow(0, 0, real).to(at::kDouble) - expected[b].narrow(0, 0, real)).abs().max().item<double>();
    EXPECT_LT(difference, limit) << "row " << b;
  }
}

TEST(MathAttention, EqualsPlainLoopsForMultiQueryAndMultiHead) {
  at::manual_seed(1);
  for (const bool multi_query : {true, false}) {
    const ModelConfig config = testing::small_config(multi_query);
    expect_naive(config, {0, 0}, {7, 7}, at::kFloat, 1e-5);
    expect_naive(config, {5, 5, 5}, {1, 1, 1}, at::kFloat, 1e-5);
    expect_naive(config, {0, 0, 0}, {7, 2, 5}, at::kFloat, 1e-5);
    expect_naive(config, {4, 9, 1}, {1, 1, 1}, at::kFloat, 1e-5);
    expect_naive(config, {4, 9, 1}, {3, 2, 3}, at::kFloat, 1e-5);
  }
}

TEST(MathAttention, KeepsItsToleranceIn16BitTypesWithTheLayerScale) {
  at::manual_seed(2);
  const ModelConfig config = testing::small_config();
  expect_naive(config, {0, 0}, {7, 4}, at::kBFloat16, 5e-2);
  expect_naive(config, {0, 0}, {7, 4}, at::kHalf, 1e-2);
  expect_naive(config, {12, 3}, {1, 1}, at::kBFloat16, 5e-2);
}

TEST(MathAttention, GivesFiniteNumbersForPadding) {
  const ModelConfig config = testing::small_config();
  const StepRows rows({0, 0}, {6, 1}, config.positions, at::kCPU);
  const at::Tensor query = at::randn({2, 6, config.hidden_size});
  const at::Tensor keys = at::randn({2, 6, config.head_dim});
  PlainWorkspace workspace;
  const at::Tensor got =
      make_math_attention(attention_shape(config), make_unfused_softmax)
          ->forward({.layer = 0, .query = query, .keys = keys, .values = keys, .rows = rows, .workspace = workspace});
  EXPECT_TRUE(at::isfinite(got).all().item<bool>());
}

TEST(MathAttention, AddsABiasBeforeTheMask) {
  ModelConfig config = testing::small_config(false);
  const StepRows rows({0}, {5}, config.positions, at::kCPU);
  const at::Tensor query = at::randn({1, 5, config.hidden_size});
  const at::Tensor keys = at::randn({1, 5, config.hidden_size});
  // A bias that hides all keys but the first makes every query return the first value.
  at::Tensor bias = at::full({1, config.heads, 5, 5}, -1e9);
  bias.select(3, 0).zero_();
  PlainWorkspace workspace;
  const at::Tensor got = make_math_attention(attention_shape(config), make_unfused_softmax)
                             ->forward({.layer = 0,
                                        .query = query,
                                        .keys = keys,
                                        .values = keys,
                                        .rows = rows,
                                        .workspace = workspace,
                                        .bias = &bias});
  EXPECT_TRUE(at::allclose(got, keys.narrow(1, 0, 1).expand_as(got)));
}

}  // namespace
}  // namespace decodelab
