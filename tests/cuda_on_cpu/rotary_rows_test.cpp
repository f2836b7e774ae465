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
