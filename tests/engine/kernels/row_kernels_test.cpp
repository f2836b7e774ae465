// The kernels that work on rows (norm, softmax, activation) against libtorch, over awkward widths and in every set of
// instructions.
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kernels/attention/masked_softmax.h"
#include "engine/kernels/elementwise/activate.h"
#include "engine/kernels/elementwise/arg_max.h"
#include "engine/kernels/elementwise/fused_norm.h"
#include "engine/tensor.h"
#include "tests/engine/kernels/every_isa.h"

namespace decodelab {
namespace {

using testing::every_isa;

struct Kind {
  ElementType type;
  at::ScalarType scalar;
  double limit;  ///< Largest difference from libtorch in double, for numbers of the size of 1.
};
const std::vector<Kind> kKinds{{ElementType::float32, at::kFloat, 1e-5},
                               {ElementType::float16, at::kHalf, 2e-3},
                               {ElementType::bfloat16, at::kBFloat16, 2e-2}};

double worst(const at::Tensor& got, const at::Tensor& expected) {
  return (got.to(at::kDouble) - expected).abs().max().item<double>();
}

TEST(FusedNorm, EqualsAnAdditionAndALayerNormOfItsRoundedSum) {
  for (const Kind& kind : kKinds) {
    for (const std::int64_t width : {1, 7, 16, 48, 129, 2048}) {
      for (const CpuIsa isa : every_isa()) {
        at::manual_seed(1);
        const at::Tensor residual = (at::randn({3, width}) * 2 + 1).to(kind.scalar);
        const at::Tensor addend = at::randn({3, width}).to(kind.scalar);
        const at::Tensor weight = at::randn({width}).to(kind.scalar);
        const at::Tensor bias = at::randn({width}).to(kind.scalar);
        at::Tensor sum = at::empty_like(residual);
        at::Tensor normed = at::empty_like(residual);
        const FusedNorm norm{.dtype = kind.type,
                             .width = width,
                             .addend = addend.const_data_ptr(),
                             .residual = residual.const_data_ptr(),
                             .weight = weight.const_data_ptr(),
                             .bias = bias.const_data_ptr(),
                             .epsilon = 1e-5f,
                             .sum = sum.mutable_data_ptr(),
                             .normed = normed.mutable_data_ptr()};
        norm_rows(norm, 0, 2, isa);
        norm_rows(norm, 2, 3, isa);
        EXPECT_TRUE(at::equal(sum, residual + addend)) << to_string(isa) << " " << width;
        const at::Tensor expected =
            at::layer_norm(sum.to(at::kDouble), {width}, weight.to(at::kDouble), bias.to(at::kDouble));
        EXPECT_LT(worst(normed, expected), 4 * kind.limit) << to_string(isa) << " " << width;
      }
    }
  }
}

TEST(FusedNorm, GivesTheBiasForARowOfEqualNumbers) {
  const at::Tensor residual = at::full({1, 40}, 3.0f);
  const at::Tensor weight = at::ones({40});
  const at::Tensor bias = at::full({40}, 0.5f);
  at::Tensor normed = at::empty({1, 40});
  norm_rows({.dtype = ElementType::float32,
             .width = 40,
             .addend = nullptr,
             .residual = residual.const_data_ptr(),
             .weight = weight.const_data_ptr(),
             .bias = bias.const_data_ptr(),
             .epsilon = 1e-5f,
             .sum = nullptr,
             .normed = normed.mutable_data_ptr()},
            0, 1, every_isa().back());
  EXPECT_TRUE(at::equal(normed, at::full({1, 40}, 0.5f)));
}

TEST(MaskedSoftmax, EqualsLibtorchsOverTheVisibleKeysAndGivesTheOthersExactlyNothing) {
  for (const Kind& kind : kKinds) {
    for (const std::int64_t keys : {1, 5, 16, 17, 100}) {
      for (const CpuIsa isa : every_isa()) {
        at::manual_seed(2);
        const std::int64_t B = 2;
        const std::int64_t G = 2;
        const std::int64_t T = std::min<std::int64_t>(3, keys);
        const std::int64_t R = 3;
        const std::vector<std::int64_t> past{0, keys - T};
        const at::Tensor scores = (at::randn({B, G, T, R, keys}) * 3).to(kind.scalar);
        at::Tensor weights = scores.clone();
        const MaskedSoftmax softmax{.dtype = kind.type,
                                    .kv_heads = G,
                                    .tokens = T,
                                    .shared_heads = R,
                                    .keys = keys,
                                    .past = past.data(),
                                    .unscale = 2.0f,
                                    .scores = weights.const_data_ptr(),
                                    .weights = weights.mutable_data_ptr()};
        softmax_rows(softmax, 0, 5, isa);
        softmax_rows(softmax, 5, B * G * T * R, isa);
        for (std::int64_t row = 0; row < B; ++row) {
          for (std::int64_t token = 0; token < T; ++token) {
            const std::int64_t seen = std::min(keys, past[static_cast<std::size_t>(row)] + token + 1);
            const at::Tensor got = weights[row].select(1, token);
            const at::Tensor expected =
                at::softmax(scores[row].select(1, token).narrow(2, 0, seen).to(at::kDouble) * 2, 2);
            EXPECT_LT(worst(got.narrow(2, 0, seen), expected), kind.limit) << to_string(isa) << " " << keys;
            EXPECT_EQ(got.narrow(2, seen, keys - seen).abs().sum().item<float>(), 0.0f);
          }
        }
      }
    }
  }
}

TEST(Highest, IsTheFirstOfTheHighestAndSeesANan) {
  for (const Kind& kind : kKinds) {
    for (const std::int64_t width : {1, 2, 15, 16, 17, 1000}) {
      for (const CpuIsa isa : every_isa()) {
        at::manual_seed(5);
        // Few different numbers, so that there are ties.
        at::Tensor numbers = at::randint(-3, 4, {6, width}).to(kind.scalar);
        numbers[4].fill_(-std::numeric_limits<float>::infinity());
        numbers[5][width / 2] = std::numeric_limits<float>::quiet_NaN();
        std::vector<std::int64_t> got(6, -1);
        arg_max_of_rows(numbers.const_data_ptr(), width, width, kind.type, 0, 6, got.data(), isa);
        for (std::int64_t row = 0; row < 6; ++row) {
          EXPECT_EQ(got[static_cast<std::size_t>(row)], numbers[row].argmax().item<std::int64_t>())
              << to_string(isa) << " " << width << " row " << row;
        }
      }
    }
  }
}

TEST(Activation, EqualsLibtorchsInBothFormsFarOutToo) {
  for (const Kind& kind : kKinds) {
    for (const auto& [activation, form] :
         {std::pair(Activation::gelu_tanh, "tanh"), std::pair(Activation::gelu_erf, "none")}) {
      for (const std::int64_t count : {1, 16, 333}) {
        for (const CpuIsa isa : every_isa()) {
          at::manual_seed(4);
          at::Tensor x = (at::randn({count}) * 4).to(kind.scalar);
          x[0] = 60;
          const at::Tensor expected = at::gelu(x.to(at::kDouble), form);
          activate_in_place(x.mutable_data_ptr(), count, kind.type, activation, isa);
          EXPECT_LT(((x.to(at::kDouble) - expected).abs() / (1 + expected.abs())).max().item<double>(), kind.limit)
              << to_string(isa) << " " << form << " " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace decodelab
