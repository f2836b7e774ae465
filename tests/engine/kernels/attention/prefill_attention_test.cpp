// Prefill attention on tiles against plain loops in double, over awkward shapes, with NaN wherever a row has no key.
#include "engine/kernels/attention/prefill_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

struct PrefillShape {
  std::int64_t kv_heads;
  std::int64_t shared_heads;
  std::int64_t head_dim;
  std::vector<std::int64_t> past;
  std::vector<std::int64_t> added;
  std::int64_t window = 0;

  std::int64_t rows() const { return std::ssize(past); }
  std::int64_t tokens() const { return *std::ranges::max_element(added); }
  std::int64_t heads() const { return kv_heads * shared_heads; }
  std::int64_t keys_of(std::int64_t row) const {
    return past[static_cast<std::size_t>(row)] + added[static_cast<std::size_t>(row)];
  }
  std::int64_t most_keys() const {
    std::int64_t most = 0;
    for (std::int64_t row = 0; row < rows(); ++row) {
      most = std::max(most, keys_of(row));
    }
    return most;
  }
};

const std::vector<PrefillShape> kPrefillShapes{
    {1, 12, 64, {0}, {128}},          {1, 16, 128, {0, 0}, {37, 5}}, {2, 1, 40, {0}, {70}},
    {1, 3, 33, {4, 9, 0}, {3, 2, 7}}, {3, 2, 8, {0, 0}, {1, 33}},    {1, 48, 128, {100}, {3}},
    {4, 1, 256, {0}, {65}},           {1, 1, 1, {0, 2}, {1, 1}},     {1, 12, 64, {0}, {200}, 33},
    {2, 3, 32, {40, 0}, {70, 9}, 7},  {1, 2, 16, {100}, {40}, 1},    {1, 4, 64, {0}, {64}, 64}};

/// bf16 by cutting an fp32 number off.
using Bits = std::uint16_t;
Bits bits_of(float value) { return static_cast<Bits>(std::bit_cast<std::uint32_t>(value) >> 16); }
float value_of(Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::vector<Bits> random_bits(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<Bits> bits(static_cast<std::size_t>(count));
  std::ranges::generate(bits, [&] { return bits_of(normal(generator)); });
  return bits;
}

struct Case {
  explicit Case(const PrefillShape& of)
      : shape(of),
        // Strides that are not the widths: a slice of a longer cache, a part of a fused product.
        key_width(shape.kv_heads * shape.head_dim + 3),
        held(shape.most_keys() + 2),
        query_width(shape.heads() * shape.head_dim + 5),
        query(random_bits(shape.rows() * shape.tokens() * query_width, 1)),
        keys(random_bits(shape.rows() * held * key_width, 2)),
        values(random_bits(shape.rows() * held * key_width, 3)) {
    for (std::int64_t row = 0; row < shape.rows(); ++row) {
      const std::int64_t begin = (row * held + shape.keys_of(row)) * key_width;
      for (std::vector<Bits>* poisoned : {&keys, &values}) {
        std::fill(poisoned->begin() + begin, poisoned->begin() + (row + 1) * held * key_width,
                  bits_of(std::numeric_limits<float>::quiet_NaN()));
      }
    }
  }

  std::vector<float> attended(float scale) {
    std::vector<Bits> out(static_cast<std::size_t>(shape.rows() * shape.tokens() * shape.heads() * shape.head_dim));
    PrefillAttention attention{.batch_size = shape.rows(),
                               .tokens = shape.tokens(),
                               .kv_heads = shape.kv_heads,
                               .shared_heads = shape.shared_heads,
                               .head_dim = shape.head_dim,
                               .scale = scale,
                               .query = query.data(),
                               .query_row_stride = shape.tokens() * query_width,
                               .query_token_stride = query_width,
                               .keys = keys.data(),
                               .values = values.data(),
                               .row_stride = held * key_width,
                               .token_stride = key_width,
                               .past = shape.past.data(),
                               .added = shape.added.data(),
                               .most_keys = shape.most_keys(),
                               .packed = nullptr,
                               .out = out.data(),
                               .window = shape.window};
    std::vector<std::byte> packed(static_cast<std::size_t>(packed_key_bytes(attention)));
    attention.packed = packed.data();
    // Two ranges, as two threads would take them.
    const std::int64_t packs = pack_items(attention);
    pack_keys(attention, packs / 2, packs);
    pack_keys(attention, 0, packs / 2);
    const std::int64_t queries = query_items(attention);
    attend_queries(attention, queries / 2, queries);
    attend_queries(attention, 0, queries / 2);
    std::vector<float> numbers;
    std::ranges::transform(out, std::back_inserter(numbers), value_of);
    return numbers;
  }

  double query_at(std::int64_t row, std::int64_t token, std::int64_t head, std::int64_t at) const {
    return value_of(
        query[static_cast<std::size_t>((row * shape.tokens() + token) * query_width + head * shape.head_dim + at)]);
  }
  double held_at(const std::vector<Bits>& of, std::int64_t row, std::int64_t key, std::int64_t head,
                 std::int64_t at) const {
    return value_of(
        of[static_cast<std::size_t>((row * held + key) * key_width + head / shape.shared_heads * shape.head_dim + at)]);
  }

  /// Softmax(q . k * scale) . v of one query, by loops.
  std::vector<double> naive(std::int64_t row, std::int64_t token, std::int64_t head, double scale) const {
    const std::int64_t seen = shape.past[static_cast<std::size_t>(row)] + token + 1;
    const std::int64_t first = shape.window == 0 ? 0 : std::max<std::int64_t>(0, seen - shape.window);
    std::vector<double> weights;
    for (std::int64_t key = first; key < seen; ++key) {
      double score = 0;
      for (std::int64_t at = 0; at < shape.head_dim; ++at) {
        score += query_at(row, token, head, at) * held_at(keys, row, key, head, at);
      }
      weights.push_back(score * scale);
    }
    const double most = *std::ranges::max_element(weights);
    double total = 0;
    for (double& weight : weights) {
      total += weight = std::exp(weight - most);
    }
    std::vector<double> out(static_cast<std::size_t>(shape.head_dim));
    for (std::int64_t key = first; key < seen; ++key) {
      for (std::int64_t at = 0; at < shape.head_dim; ++at) {
        out[static_cast<std::size_t>(at)] +=
            weights[static_cast<std::size_t>(key - first)] / total * held_at(values, row, key, head, at);
      }
    }
    return out;
  }

  const PrefillShape& shape;
  std::int64_t key_width;
  std::int64_t held;
  std::int64_t query_width;
  std::vector<Bits> query;
  std::vector<Bits> keys;
  std::vector<Bits> values;
};

TEST(PrefillAttention, EqualsPlainLoopsAndGivesFiniteNumbersForPadding) {
  if (!has_prefill_attention()) {
    GTEST_SKIP() << "this processor multiplies no pairs of bf16 (AVX-512 BF16 or AMX)";
  }
  for (const PrefillShape& shape : kPrefillShapes) {
    Case attention(shape);
    const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
    const std::vector<float> got = attention.attended(static_cast<float>(scale));
    for (std::int64_t row = 0; row < shape.rows(); ++row) {
      for (std::int64_t token = 0; token < shape.tokens(); ++token) {
        for (std::int64_t head = 0; head < shape.heads(); ++head) {
          const float* out = got.data() + ((row * shape.tokens() + token) * shape.heads() + head) * shape.head_dim;
          const bool real = token < shape.added[static_cast<std::size_t>(row)];
          const std::vector<double> expected = real ? attention.naive(row, token, head, scale) : std::vector<double>{};
          for (std::int64_t at = 0; at < shape.head_dim; ++at) {
            ASSERT_TRUE(std::isfinite(out[at])) << "row " << row << ", token " << token;
            // Weights and results are rounded to 8 bits.
            if (real) {
              ASSERT_NEAR(out[at], expected[static_cast<std::size_t>(at)], 0.02)
                  << "row " << row << ", token " << token << ", head " << head;
            }
          }
        }
      }
    }
  }
}

TEST(PrefillAttention, GivesARowTheSameBitsInAnyBatch) {
  if (!has_prefill_attention()) {
    GTEST_SKIP() << "this processor multiplies no pairs of bf16 (AVX-512 BF16 or AMX)";
  }
  const PrefillShape together{1, 12, 64, {0, 0}, {50, 90}};
  const PrefillShape alone{1, 12, 64, {0}, {50}};
  Case both(together);
  Case one(alone);
  // The first row of both, in the strides of one.
  for (std::int64_t token = 0; token < 50; ++token) {
    std::copy_n(both.query.begin() + token * both.query_width, one.query_width,
                one.query.begin() + token * one.query_width);
    std::copy_n(both.keys.begin() + token * both.key_width, one.key_width, one.keys.begin() + token * one.key_width);
    std::copy_n(both.values.begin() + token * both.key_width, one.key_width,
                one.values.begin() + token * one.key_width);
  }
  const std::vector<float> of_both = both.attended(0.125F);
  const std::vector<float> of_one = one.attended(0.125F);
  EXPECT_TRUE(std::equal(of_one.begin(), of_one.end(), of_both.begin()));
}

}  // namespace
}  // namespace decodelab
