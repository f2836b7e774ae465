// The masked softmax on the CPU's device, a block or a warp a row, against a softmax in double precision.
#include "engine/kernels/attention/masked_softmax.cuh"

#include <limits>

#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

using MaskedSoftmax = KernelTest;
using Launch = void (*)(const DeviceSoftmax&, CUstream_st*);

struct Case {
  std::int64_t kv_heads;
  std::int64_t tokens;
  std::int64_t shared_heads;
  std::int64_t keys;
  std::vector<std::int64_t> held;  ///< Of each row of the batch.
  bool one_length = false;         ///< One number serves the whole batch.
  std::size_t skew = 0;            ///< Elements that scores begin behind a multiple of 16 bytes.
};

std::int64_t seen_keys(const Case& it, std::int64_t row) {
  const std::int64_t token = row / it.shared_heads % it.tokens;
  const std::int64_t batch = row / it.shared_heads / it.tokens / it.kv_heads;
  return std::min(it.held[it.one_length ? 0 : static_cast<std::size_t>(batch)] + token + 1, it.keys);
}

template <typename Element>
void expect_softmax(Launch launch, const Case& it) {
  SCOPED_TRACE(std::to_string(it.kv_heads) + " x " + std::to_string(it.shared_heads) + " heads, " +
               std::to_string(it.tokens) + " tokens, " + std::to_string(it.keys) + " keys");
  constexpr float kUnscale = 3.0f;
  const auto batch_size = static_cast<std::int64_t>(it.held.size());
  const std::int64_t rows = batch_size * it.kv_heads * it.tokens * it.shared_heads;
  Numbers numbers;
  std::vector<Element> values = numbers.next<Element>(rows * it.keys, 2.0f);
  // Hidden scores are NaN: one that gets into a maximum or a sum would show.
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t key = seen_keys(it, row); key < it.keys; ++key) {
      values[static_cast<std::size_t>(row * it.keys + key)] =
          element_of<Element>(std::numeric_limits<float>::quiet_NaN());
    }
  }
  const Memory<Element> scores("scores", values, it.skew * sizeof(Element));
  const Memory<std::int64_t> held("held", it.one_length ? std::vector<std::int64_t>{it.held.front()} : it.held);
  launch({.element = OfElement<Element>::kType,
          .rows = rows,
          .kv_heads = it.kv_heads,
          .tokens = it.tokens,
          .shared_heads = it.shared_heads,
          .keys = it.keys,
          .held = held.data(),
          .held_stride = it.one_length ? 0 : 1,
          .unscale = kUnscale,
          .scores = scores.data()},
         nullptr);
  Difference off;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t seen = seen_keys(it, row);
    const auto weight = [&](std::int64_t key) {
      return std::exp(number_of(values[static_cast<std::size_t>(row * it.keys + key)]) * double{kUnscale});
    };
    double total = 0.0;
    for (std::int64_t key = 0; key < seen; ++key) {
      total += weight(key);
    }
    for (std::int64_t key = 0; key < it.keys; ++key) {
      const double got = scores.number(row * it.keys + key);
      if (key < seen) {
        off.add(got, weight(key) / total);
      } else {
        ASSERT_EQ(got, 0.0) << "the weight of hidden key " << key << " of row " << row;
      }
    }
  }
  EXPECT_LE(off.relative(), 2 * OfElement<Element>::kTolerance);
}

/// Shapes for both kernels: one key, ends in the middle of a vector and of a warp, one, some and all key heads.
const std::vector<Case>& awkward_cases() {
  static const std::vector<Case> cases = {
      {.kv_heads = 1, .tokens = 1, .shared_heads = 4, .keys = 1, .held = {0, 0}},
      {.kv_heads = 2, .tokens = 1, .shared_heads = 2, .keys = 7, .held = {6, 2}},
      {.kv_heads = 4, .tokens = 2, .shared_heads = 1, .keys = 33, .held = {31, 0}},
      {.kv_heads = 1, .tokens = 11, .shared_heads = 3, .keys = 16, .held = {5}},  // 33 rows of scores.
      {.kv_heads = 1, .tokens = 1, .shared_heads = 2, .keys = 257, .held = {256, 100, 0}},
      {.kv_heads = 1, .tokens = 1, .shared_heads = 1, .keys = 256, .held = {200}},
      {.kv_heads = 1, .tokens = 3, .shared_heads = 1, .keys = 24, .held = {9, 9}, .one_length = true},
      {.kv_heads = 1, .tokens = 2, .shared_heads = 2, .keys = 64, .held = {50}, .skew = 1},
  };
  return cases;
}

TEST_F(MaskedSoftmax, OfABlockEqualsTheReference) {
  in_every_type_and_order([]<typename Element>() {
    for (const Case& it : awkward_cases()) {
      expect_softmax<Element>(launch_block_softmax, it);
    }
  });
  expect_all_launched("softmax_of_block");
}

TEST_F(MaskedSoftmax, OfAWarpEqualsTheReference) {
  in_every_type_and_order([]<typename Element>() {
    for (const Case& it : awkward_cases()) {
      expect_softmax<Element>(launch_warp_softmax, it);
    }
  });
}

TEST_F(MaskedSoftmax, OfAWarpEqualsTheReferenceForEveryNumberOfScoresOfALane) {
  in_every_type_and_order([]<typename Element>() {
    for (const std::int64_t keys : {20, 40, 100, 200, 400, 1000, 2048, 2049}) {
      expect_softmax<Element>(
          launch_warp_softmax,
          {.kv_heads = 1, .tokens = 1, .shared_heads = 1, .keys = keys, .held = {keys - 1, keys / 2}});
    }
  });
  expect_all_launched("softmax_of_warp");
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
