// Norms of heads and rotary positions on the CPU's device, against double precision.
#include "engine/kernels/elementwise/rotary_rows.cuh"

#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

using RotaryRows = KernelTest;

constexpr float kRotaryEpsilon = 1e-6f;
constexpr std::int64_t kPositions = 40;

struct Heads {
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t head_dim;
  std::int64_t dims;
  bool norms = true;
  float weight_offset = 0.0f;
  std::int64_t position_count = 0;  ///< 0: as many as tokens.
};

template <typename Element>
void expect_turned(const Heads& it) {
  SCOPED_TRACE(std::to_string(it.tokens) + " x " + std::to_string(it.heads) + " heads of " +
               std::to_string(it.head_dim) + ", of which " + std::to_string(it.dims) + " turn");
  const std::int64_t k = it.head_dim;
  const std::int64_t half = it.dims / 2;
  // What follows the heads of a token is another part of the product, and stays as it is.
  const std::int64_t stride = it.heads * k + 5;
  const std::int64_t count = it.position_count == 0 ? it.tokens : it.position_count;
  Numbers numbers;
  const std::vector<Element> before = numbers.next<Element>(it.tokens * stride, 2.0f);
  const Memory<Element> rows("rows", before);
  const Memory<Element> cosine("cosine", numbers.next<Element>(std::max<std::int64_t>(kPositions * half, 1)));
  const Memory<Element> sine("sine", numbers.next<Element>(std::max<std::int64_t>(kPositions * half, 1)));
  const Memory<Element> norm("norm", numbers.next<Element>(k));
  std::vector<std::int64_t> places;
  for (std::int64_t token = 0; token < count; ++token) {
    places.push_back((7 * token + 3) % kPositions);
  }
  const Memory<std::int64_t> positions("positions", places);
  launch_rotary_rows({.element = OfElement<Element>::kType,
                      .tokens = it.tokens,
                      .heads = it.heads,
                      .head_dim = k,
                      .dims = it.dims,
                      .rows = rows.data(),
                      .stride = stride,
                      .positions = positions.data(),
                      .position_count = count,
                      .cosine = cosine.data(),
                      .sine = sine.data(),
                      .norm = it.norms ? norm.data() : nullptr,
                      .weight_offset = it.weight_offset,
                      .epsilon = kRotaryEpsilon},
                     nullptr);
  Difference off;
  for (std::int64_t token = 0; token < it.tokens; ++token) {
    const std::int64_t position = places[static_cast<std::size_t>(token % count)];
    for (std::int64_t head = 0; head < it.heads; ++head) {
      const std::int64_t begin = token * stride + head * k;
      std::vector<double> x;
      double squares = 0.0;
      for (std::int64_t at = 0; at < k; ++at) {
        x.push_back(number_of(before[static_cast<std::size_t>(begin + at)]));
        squares += x.back() * x.back() / static_cast<double>(k);
      }
      for (std::int64_t at = 0; it.norms && at < k; ++at) {
        x[static_cast<std::size_t>(at)] *=
            (norm.number(at) + double{it.weight_offset}) / std::sqrt(squares + double{kRotaryEpsilon});
      }
      for (std::int64_t at = 0; at < k; ++at) {
        double expected = x[static_cast<std::size_t>(at)];
        if (at < it.dims) {
          const std::int64_t pair = at % half;
          const double other = x[static_cast<std::size_t>(at < half ? at + half : at - half)];
          expected = expected * cosine.number(position * half + pair) +
                     (at < half ? -other : other) * sine.number(position * half + pair);
        }
        off.add(rows.number(begin + at), expected);
      }
    }
    for (std::int64_t at = it.heads * k; at < stride; ++at) {
      ASSERT_EQ(rows.number(token * stride + at), number_of(before[static_cast<std::size_t>(token * stride + at)]));
    }
  }
  EXPECT_LE(off.relative(), OfElement<Element>::kTolerance);
}

TEST_F(RotaryRows, EqualTheReferenceForAwkwardHeads) {
  in_every_type_and_order([]<typename Element>() {
    expect_turned<Element>({.tokens = 1, .heads = 1, .head_dim = 64, .dims = 64});
    expect_turned<Element>({.tokens = 5, .heads = 3, .head_dim = 80, .dims = 20, .norms = false});
    expect_turned<Element>({.tokens = 33, .heads = 2, .head_dim = 12, .dims = 12});
    expect_turned<Element>({.tokens = 2, .heads = 9, .head_dim = 128, .dims = 128, .weight_offset = 1.0f});
    expect_turned<Element>({.tokens = 3, .heads = 2, .head_dim = 33, .dims = 0});
  });
  expect_all_launched("turn_heads");
}

/// Writes the keys and values of B rows of T tokens into a cache of 40 slots, where values lie behind keys, and
/// compares them with what the kernel leaves in place without one.
template <typename Element>
void expect_in_cache(std::int64_t batch_size, std::int64_t tokens, std::int64_t heads, std::int64_t k,
                     std::int64_t dims) {
  const std::int64_t all = batch_size * tokens;
  const std::int64_t width = heads * k;
  Numbers numbers;
  const std::vector<Element> before = numbers.next<Element>(all * 2 * width, 2.0f);
  const Memory<Element> in_place("in_place", before);
  const Memory<Element> rows("rows", before);
  const Memory<Element> cosine("cosine", numbers.next<Element>(std::max<std::int64_t>(kPositions * dims / 2, 1)));
  const Memory<Element> sine("sine", numbers.next<Element>(std::max<std::int64_t>(kPositions * dims / 2, 1)));
  const std::vector<Element> empty = numbers.next<Element>(batch_size * kPositions * 2 * width);
  const Memory<Element> cache("cache", empty);
  std::vector<std::int64_t> places;
  for (std::int64_t token = 0; token < all; ++token) {
    places.push_back(token / tokens * 3 + token % tokens + 1);  // Rows begin at 1, 4, 7, ..
  }
  const Memory<std::int64_t> positions("positions", places);
  DeviceRotary rotary{.element = OfElement<Element>::kType,
                      .tokens = all,
                      .heads = heads,
                      .head_dim = k,
                      .dims = dims,
                      .rows = in_place.data(),
                      .stride = 2 * width,
                      .positions = positions.data(),
                      .position_count = all,
                      .cosine = cosine.data(),
                      .sine = sine.data(),
                      .norm = nullptr,
                      .weight_offset = 0.0f,
                      .epsilon = kRotaryEpsilon};
  launch_rotary_rows(rotary, nullptr);
  rotary.rows = rows.data();
  rotary.cache = {.keys = cache.data(),
                  .values = static_cast<Element*>(cache.data()) + width,
                  .row_stride = kPositions * 2 * width,
                  .slot_stride = 2 * width,
                  .tokens = tokens};
  launch_rotary_rows(rotary, nullptr);
  std::vector<double> expected;
  for (const Element& element : empty) {
    expected.push_back(number_of(element));
  }
  for (std::int64_t token = 0; token < all; ++token) {
    const std::int64_t slot = token / tokens * kPositions + places[static_cast<std::size_t>(token)];
    for (std::int64_t at = 0; at < 2 * width; ++at) {
      expected[static_cast<std::size_t>(slot * 2 * width + at)] = in_place.number(token * 2 * width + at);
    }
  }
  for (std::int64_t at = 0; at < batch_size * kPositions * 2 * width; ++at) {
    ASSERT_EQ(cache.number(at), expected[static_cast<std::size_t>(at)]) << at;
  }
  for (std::int64_t at = 0; at < all * 2 * width; ++at) {
    ASSERT_EQ(rows.number(at), number_of(before[static_cast<std::size_t>(at)]));
  }
}

TEST_F(RotaryRows, WriteKeysAndValuesIntoTheSlotsOfTheirPositions) {
  in_every_type_and_order([]<typename Element>() {
    expect_in_cache<Element>(1, 1, 1, 64, 64);
    expect_in_cache<Element>(3, 2, 2, 12, 8);
    expect_in_cache<Element>(5, 1, 3, 33, 0);
  });
}

TEST_F(RotaryRows, RepeatThePositionsOfRowsOfOneLength) {
  in_every_type_and_order([]<typename Element>() {
    expect_turned<Element>({.tokens = 6, .heads = 2, .head_dim = 16, .dims = 16, .norms = false, .position_count = 1});
    expect_turned<Element>({.tokens = 6, .heads = 2, .head_dim = 16, .dims = 8, .position_count = 3});
  });
}

TEST_F(RotaryRows, LaunchNothingWithoutTokens) {
  const std::uint32_t before = machine().blocks_run();
  launch_rotary_rows({.element = DeviceElement::float32, .tokens = 0, .heads = 1, .head_dim = 64}, nullptr);
  EXPECT_EQ(machine().blocks_run(), before);
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
