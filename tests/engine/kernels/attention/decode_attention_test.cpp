// Own decode attention against plain loops, over awkward shapes and in every set of instructions that this processor
// has.
#include "engine/kernels/attention/decode_attention.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernels/scalar_type.h"
#include "engine/tensor.h"
#include "tests/engine/kernels/every_isa.h"

namespace decodelab {
namespace {

using testing::every_isa;

struct Shape {
  std::int64_t kv_heads;
  std::int64_t shared_heads;
  std::int64_t head_dim;
  std::vector<std::int64_t> held;  ///< Keys before the step, a row each.
  std::int64_t window = 0;

  /// The first key that the query of a row sees, and how many it sees.
  std::int64_t first(std::size_t row) const {
    return window == 0 ? 0 : std::max<std::int64_t>(0, held[row] + 1 - window);
  }
  std::int64_t seen(std::size_t row) const { return held[row] + 1 - first(row); }
};

const std::vector<Shape> kShapes{{1, 16, 128, {0}},
                                 {1, 16, 128, {255, 256, 257}},
                                 {1, 48, 128, {31, 32}},
                                 {1, 4, 12, {0, 1, 30, 700}},
                                 {4, 1, 12, {5, 64}},
                                 {2, 3, 20, {33, 7}},
                                 {3, 3, 64, {511, 0, 128}},
                                 {2, 2, 128, {40, 63}},
                                 {8, 1, 64, {31, 600}},
                                 {2, 4, 80, {256, 90}},
                                 {1, 17, 7, {40}},
                                 {1, 1, 256, {300}},
                                 {3, 16, 64, {1000, 0, 9}},
                                 {2, 20, 96, {14, 15, 16, 600}},
                                 {1, 12, 64, {128, 255, 256}},
                                 {1, 16, 64, {700, 3, 40}, 41},
                                 {2, 3, 32, {900, 255, 256}, 257},
                                 {3, 3, 96, {511}, 1}};

struct Inputs {
  at::Tensor query;   ///< [B, G * R * k]
  at::Tensor merged;  ///< [B, L, 2 * G * k], NaN where the query of a row sees no key
};

std::int64_t longest(const Shape& shape) { return *std::max_element(shape.held.begin(), shape.held.end()) + 1; }
std::int64_t most_seen(const Shape& shape) {
  return shape.window == 0 ? longest(shape) : std::min(shape.window, longest(shape));
}

Inputs inputs_of(const Shape& shape, at::ScalarType dtype) {
  at::manual_seed(3);
  const auto B = static_cast<std::int64_t>(shape.held.size());
  Inputs inputs{.query = at::randn({B, shape.kv_heads * shape.shared_heads * shape.head_dim}).to(dtype),
                .merged = at::randn({B, longest(shape) + 5, 2 * shape.kv_heads * shape.head_dim}).to(dtype)};
  for (std::int64_t row = 0; row < B; ++row) {
    const std::int64_t seen = shape.held[static_cast<std::size_t>(row)] + 1;
    inputs.merged[row]
        .narrow(0, 0, shape.first(static_cast<std::size_t>(row)))
        .fill_(std::numeric_limits<float>::quiet_NaN());
    inputs.merged[row].narrow(0, seen, inputs.merged.size(1) - seen).fill_(std::numeric_limits<float>::quiet_NaN());
  }
  return inputs;
}

at::Tensor naive(const Shape& shape, const Inputs& inputs, double scale) {
  const auto B = static_cast<std::int64_t>(shape.held.size());
  const std::int64_t k = shape.head_dim;
  at::Tensor out = at::zeros({B, shape.kv_heads * shape.shared_heads * k}, at::kDouble);
  for (std::int64_t row = 0; row < B; ++row) {
    const at::Tensor held =
        inputs.merged[row]
            .narrow(0, shape.first(static_cast<std::size_t>(row)), shape.seen(static_cast<std::size_t>(row)))
            .to(at::kDouble);
    for (std::int64_t head = 0; head < shape.kv_heads * shape.shared_heads; ++head) {
      const std::int64_t group = head / shape.shared_heads;
      const at::Tensor keys = held.narrow(1, group * k, k);
      const at::Tensor values = held.narrow(1, (shape.kv_heads + group) * k, k);
      const at::Tensor query = inputs.query[row].narrow(0, head * k, k).to(at::kDouble);
      out[row].narrow(0, head * k, k).copy_(at::mv(values.t(), at::softmax(at::mv(keys, query) * scale, 0)));
    }
  }
  return out;
}

/// Keys and values of all rows in pages, with NaN where the query sees no key.
struct Pages {
  std::vector<at::Tensor> pages;  ///< [2, kSplitKeys, G * k] each
  std::vector<const void*> at;
  std::int64_t of_a_row = 0;
};

Pages pages_of(const Shape& shape, const Inputs& inputs) {
  Pages all{.of_a_row = splits_of(longest(shape))};
  const std::int64_t width = shape.kv_heads * shape.head_dim;
  for (std::int64_t row = 0; row < inputs.merged.size(0); ++row) {
    const std::int64_t seen = shape.held[static_cast<std::size_t>(row)] + 1;
    for (std::int64_t page = 0; page < all.of_a_row; ++page) {
      const std::int64_t begin = page * kSplitKeys;
      if (begin >= seen) {
        all.at.push_back(nullptr);
        continue;
      }
      all.pages.push_back(
          at::full({2, kSplitKeys, width}, std::numeric_limits<float>::quiet_NaN(), inputs.merged.options()));
      const std::int64_t count = std::min(seen - begin, kSplitKeys);
      const at::Tensor tokens = inputs.merged[row].narrow(0, begin, count);
      all.pages.back()[0].narrow(0, 0, count).copy_(tokens.narrow(1, 0, width));
      all.pages.back()[1].narrow(0, 0, count).copy_(tokens.narrow(1, width, width));
      all.at.push_back(all.pages.back().const_data_ptr());
    }
  }
  return all;
}

/// The kernel's result for `rows` of the inputs, their work cut into pieces of `pieces`; from pages where there are
/// some.
at::Tensor attend(const Shape& shape, const Inputs& inputs, float scale, CpuIsa isa, std::int64_t pieces,
                  const Pages* pages = nullptr) {
  const at::Tensor out = at::empty_like(inputs.query);
  DecodeAttention attention{.dtype = element_type(inputs.query.scalar_type()),
                            .batch_size = inputs.query.size(0),
                            .kv_heads = shape.kv_heads,
                            .shared_heads = shape.shared_heads,
                            .head_dim = shape.head_dim,
                            .scale = scale,
                            .query = inputs.query.const_data_ptr(),
                            .query_stride = inputs.query.stride(0),
                            .keys = inputs.merged.const_data_ptr(),
                            .values = static_cast<const std::byte*>(inputs.merged.const_data_ptr()) +
                                      shape.kv_heads * shape.head_dim * inputs.merged.element_size(),
                            .row_stride = inputs.merged.stride(0),
                            .token_stride = inputs.merged.stride(1),
                            .held = shape.held.data(),
                            .splits = splits_of(most_seen(shape)),
                            .partials = nullptr,
                            .out = out.mutable_data_ptr(),
                            .window = shape.window};
  if (pages != nullptr) {
    attention.keys = attention.values = nullptr;
    attention.pages = pages->at.data();
    attention.pages_of_a_row = pages->of_a_row;
  }
  std::vector<float> partials(static_cast<std::size_t>(partial_floats(attention)),
                              std::numeric_limits<float>::quiet_NaN());
  attention.partials = partials.data();
  for (std::int64_t at = 0; at < split_items(attention); at += pieces) {
    attend_splits(attention, at, std::min(at + pieces, split_items(attention)), isa);
  }
  for (std::int64_t at = 0; at < merge_items(attention); at += pieces) {
    merge_splits(attention, at, std::min(at + pieces, merge_items(attention)), isa);
  }
  return out;
}

TEST(DecodeAttention, ReadsPagesToTheLastBitAsItReadsWhatLiesTogether) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const Shape& shape : kShapes) {
      if (shape.window > 0) {
        continue;
      }
      const Inputs inputs = inputs_of(shape, dtype);
      const Pages pages = pages_of(shape, inputs);
      for (const CpuIsa isa : every_isa(element_type(dtype))) {
        EXPECT_TRUE(at::equal(attend(shape, inputs, 0.1F, isa, 3, &pages), attend(shape, inputs, 0.1F, isa, 3)))
            << shape.kv_heads << " key heads, " << shape.shared_heads << " beside each other, " << shape.head_dim;
      }
    }
  }
}

TEST(DecodeAttention, EqualsPlainLoopsAndReadsNothingPastARowsLengthOrBeforeItsWindow) {
  for (const auto& [dtype, limit] :
       {std::pair(at::kFloat, 2e-5), std::pair(at::kHalf, 4e-3), std::pair(at::kBFloat16, 2e-2)}) {
    for (const Shape& shape : kShapes) {
      const Inputs inputs = inputs_of(shape, dtype);
      const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
      const at::Tensor expected = naive(shape, inputs, scale);
      for (const CpuIsa isa : every_isa(element_type(dtype))) {
        const at::Tensor got = attend(shape, inputs, static_cast<float>(scale), isa, 1);
        const double worst = (got.to(at::kDouble) - expected).abs().max().item<double>();
        EXPECT_LT(worst, limit) << to_string(isa) << " " << shape.kv_heads << "x" << shape.shared_heads << "x"
                                << shape.head_dim << " of " << shape.held.front();
      }
    }
  }
}

TEST(DecodeAttention, GivesARowTheSameBitsWhateverStandsBesideItAndHoweverTheWorkIsCut) {
  const Shape together{1, 16, 64, {300, 5, 700}};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Inputs inputs = inputs_of(together, dtype);
    const CpuIsa isa = every_isa(element_type(dtype)).back();
    const at::Tensor all = attend(together, inputs, 0.125f, isa, 1);
    EXPECT_TRUE(at::equal(attend(together, inputs, 0.125f, isa, 100), all));
    const Shape alone{1, 16, 64, {300}};
    const Inputs first{.query = inputs.query.narrow(0, 0, 1).contiguous(), .merged = inputs.merged.narrow(0, 0, 1)};
    EXPECT_TRUE(at::equal(attend(alone, first, 0.125f, isa, 1)[0], all[0]));
  }
}

}  // namespace
}  // namespace decodelab
