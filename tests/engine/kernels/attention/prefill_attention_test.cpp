// Prefill attention on tiles and in lanes against plain loops in double, over awkward shapes, with NaN wherever a row
// has no key.
#include "engine/kernels/attention/prefill_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/kernels/every_isa.h"

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
float value_of(Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
float value_of(float value) { return value; }
template <typename Element>
Element element_of(float value) {
  if constexpr (std::is_same_v<Element, float>) {
    return value;
  } else {
    return static_cast<Bits>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
}

template <typename Element>
std::vector<Element> random_elements(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<Element> elements(static_cast<std::size_t>(count));
  std::ranges::generate(elements, [&] { return element_of<Element>(normal(generator)); });
  return elements;
}

/// Runs all pieces of the kernels for tiles, in two ranges, as two threads would take them.
void attend_in_tiles(PrefillAttention attention) {
  std::vector<std::byte> packed(static_cast<std::size_t>(packed_key_bytes(attention)));
  attention.packed = packed.data();
  const std::int64_t packs = pack_items(attention);
  pack_keys(attention, packs / 2, packs);
  pack_keys(attention, 0, packs / 2);
  const std::int64_t queries = query_items(attention);
  attend_queries(attention, queries / 2, queries);
  attend_queries(attention, 0, queries / 2);
}
void attend_in_all_lanes(const PrefillAttention& attention, CpuIsa isa) {
  const std::int64_t items = lane_items(attention);
  attend_in_lanes(attention, items / 2, items, isa);
  attend_in_lanes(attention, 0, items / 2, isa);
}

template <typename Element>
struct Case {
  explicit Case(const PrefillShape& of)
      : shape(of),
        // Strides that are not the widths: a slice of a longer cache, a part of a fused product.
        key_width(shape.kv_heads * shape.head_dim + 3),
        held(shape.most_keys() + 2),
        query_width(shape.heads() * shape.head_dim + 5),
        query(random_elements<Element>(shape.rows() * shape.tokens() * query_width, 1)),
        keys(random_elements<Element>(shape.rows() * held * key_width, 2)),
        values(random_elements<Element>(shape.rows() * held * key_width, 3)) {
    for (std::int64_t row = 0; row < shape.rows(); ++row) {
      const std::int64_t begin = (row * held + shape.keys_of(row)) * key_width;
      for (std::vector<Element>* poisoned : {&keys, &values}) {
        std::fill(poisoned->begin() + begin, poisoned->begin() + (row + 1) * held * key_width,
                  element_of<Element>(std::numeric_limits<float>::quiet_NaN()));
      }
    }
  }

  /// What `attend` makes of the attention.
  std::vector<float> attended(float scale, const std::function<void(const PrefillAttention&)>& attend) {
    std::vector<Element> out(static_cast<std::size_t>(shape.rows() * shape.tokens() * shape.heads() * shape.head_dim));
    attend(PrefillAttention{.dtype = std::is_same_v<Element, float> ? ElementType::float32 : ElementType::bfloat16,
                            .batch_size = shape.rows(),
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
                            .window = shape.window});
    std::vector<float> numbers;
    std::ranges::transform(out, std::back_inserter(numbers), [](Element element) { return value_of(element); });
    return numbers;
  }

  double query_at(std::int64_t row, std::int64_t token, std::int64_t head, std::int64_t at) const {
    return value_of(
        query[static_cast<std::size_t>((row * shape.tokens() + token) * query_width + head * shape.head_dim + at)]);
  }
  double held_at(const std::vector<Element>& of, std::int64_t row, std::int64_t key, std::int64_t head,
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
  std::vector<Element> query;
  std::vector<Element> keys;
  std::vector<Element> values;
};

using Attend = std::function<void(const PrefillAttention&)>;

/// What the loops say of every query of a shape; nothing of padding.
template <typename Element>
std::vector<std::vector<double>> naive_of(const Case<Element>& attention, double scale) {
  const PrefillShape& shape = attention.shape;
  std::vector<std::vector<double>> all;
  for (std::int64_t row = 0; row < shape.rows(); ++row) {
    for (std::int64_t token = 0; token < shape.tokens(); ++token) {
      const bool real = token < shape.added[static_cast<std::size_t>(row)];
      for (std::int64_t head = 0; head < shape.heads(); ++head) {
        all.push_back(real ? attention.naive(row, token, head, scale) : std::vector<double>{});
      }
    }
  }
  return all;
}

/// Holds what each way makes of every shape to the loops, which are slow and so run once.
template <typename Element>
void expect_plain_loops(double tolerance, const std::vector<Attend>& ways) {
  for (const PrefillShape& shape : kPrefillShapes) {
    Case<Element> attention(shape);
    const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
    const std::vector<std::vector<double>> expected = naive_of(attention, scale);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      SCOPED_TRACE("way " + std::to_string(way));
      const std::vector<float> got = attention.attended(static_cast<float>(scale), ways[way]);
      const float* out = got.data();
      for (std::size_t query = 0; query < expected.size(); ++query, out += shape.head_dim) {
        ASSERT_TRUE(std::all_of(out, out + shape.head_dim, [](float value) { return std::isfinite(value); }))
            << "query " << query;
        for (std::size_t at = 0; at < expected[query].size(); ++at) {
          ASSERT_NEAR(out[at], expected[query][at], tolerance) << "query " << query;
        }
      }
    }
  }
}

/// The lanes of every set of instructions that this processor has.
std::vector<Attend> lanes_of_every_isa() {
  std::vector<Attend> ways;
  for (const CpuIsa isa : testing::every_isa()) {
    ways.emplace_back([isa](const PrefillAttention& attention) { attend_in_all_lanes(attention, isa); });
  }
  return ways;
}

/// Expects the same bits of a row alone and beside another.
template <typename Element>
void expect_same_bits_in_any_batch(const Attend& attend) {
  const PrefillShape together{1, 12, 64, {0, 0}, {50, 90}};
  const PrefillShape alone{1, 12, 64, {0}, {50}};
  Case<Element> both(together);
  Case<Element> one(alone);
  // The first row of both, in the strides of one.
  for (std::int64_t token = 0; token < 50; ++token) {
    std::copy_n(both.query.begin() + token * both.query_width, one.query_width,
                one.query.begin() + token * one.query_width);
    std::copy_n(both.keys.begin() + token * both.key_width, one.key_width, one.keys.begin() + token * one.key_width);
    std::copy_n(both.values.begin() + token * both.key_width, one.key_width,
                one.values.begin() + token * one.key_width);
  }
  const std::vector<float> of_both = both.attended(0.125F, attend);
  const std::vector<float> of_one = one.attended(0.125F, attend);
  EXPECT_TRUE(std::equal(of_one.begin(), of_one.end(), of_both.begin()));
}

// Weights and results are rounded to 8 bits.
constexpr double kOfBfloat16 = 0.02;
constexpr double kOfFloat = 1e-5;

TEST(PrefillAttention, OnTilesEqualsPlainLoopsAndGivesFiniteNumbersForPadding) {
  if (!has_prefill_attention()) {
    GTEST_SKIP() << "this processor multiplies no pairs of bf16 (AVX-512 BF16 or AMX)";
  }
  expect_plain_loops<Bits>(kOfBfloat16, {attend_in_tiles});
}

TEST(PrefillAttention, OnTilesGivesARowTheSameBitsInAnyBatch) {
  if (!has_prefill_attention()) {
    GTEST_SKIP() << "this processor multiplies no pairs of bf16 (AVX-512 BF16 or AMX)";
  }
  expect_same_bits_in_any_batch<Bits>(attend_in_tiles);
}

TEST(PrefillAttention, InLanesEqualsPlainLoopsAndGivesFiniteNumbersForPadding) {
  expect_plain_loops<float>(kOfFloat, lanes_of_every_isa());
  expect_plain_loops<Bits>(kOfBfloat16, lanes_of_every_isa());
}

TEST(PrefillAttention, InLanesGivesARowTheSameBitsInAnyBatch) {
  for (const Attend& attend : lanes_of_every_isa()) {
    expect_same_bits_in_any_batch<float>(attend);
    expect_same_bits_in_any_batch<Bits>(attend);
  }
}

}  // namespace
}  // namespace decodelab
