// Each CUDA kernel against libtorch's operators, alone and on shapes that end in the middle of a vector, a warp or a
// tile.
#include <gtest/gtest.h>

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/kernels/elementwise/random_fill.h"
#include "engine/layers/attention.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/rotary.h"
#include "engine/layers/softmax.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/layers/workspace.h"
#include "engine/runtime.h"
#include "engine/tensor.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

/// max|a - b| / max|b| of one kernel: rounding of the type, and of another order of summation.
double kernel_tolerance(at::ScalarType dtype) {
  return dtype == at::kFloat ? 2e-5 : dtype == at::kHalf ? 2e-3 : 1.6e-2;
}

double difference(const at::Tensor& got, const at::Tensor& expected) {
  const at::Tensor wanted = expected.to(at::kDouble);
  return ((got.to(at::kDouble) - wanted).abs().max() / wanted.abs().max()).item<double>();
}

at::Tensor random(const std::vector<std::int64_t>& shape, const std::string& name, at::ScalarType dtype) {
  return random_uniform(shape, 11, synthetic_stream(name), "cuda:0").to(dtype);
}

EnginePlan plan_of(const std::string& arm) { return bind_arm(parse_arm(arm), reference_plan()); }

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (present_devices().size() < 2) {
      GTEST_SKIP() << "no CUDA device is present";
    }
  }
  const c10::InferenceMode inference_;
  PlainWorkspace workspace_;
};

TEST_F(CudaKernels, SoftmaxOfBlocksAndWarpsIsLibtorchs) {
  const std::int64_t B = 3;
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t L : {1, 7, 8, 31, 33, 255, 256, 2047, 2048, 2049, 5000}) {
      for (const std::int64_t T : {1, 3}) {
        if (L < T) {
          continue;
        }
        // Rows of different lengths, the first one the longest.
        const StepRows rows({L - T, (L - T) / 2, 0}, {T, T, T}, 8192, at::Device("cuda:0"));
        const at::Tensor scores = random({B, 2, T, 3, L}, "scores", dtype) * 4;
        const SoftmaxCall call{.scores = scores,
                               .bias = nullptr,
                               .rows = rows,
                               .upcast = dtype != at::kFloat,
                               .unscale = dtype != at::kFloat ? 3.0 : 1.0,
                               .workspace = workspace_};
        const at::Tensor expected = reference_plan().softmax.factory()()->forward(call);
        const at::Tensor hidden = rows.visible(L).logical_not().unsqueeze(1).unsqueeze(3).expand(scores.sizes());
        for (const char* variant : {"fused-softmax", "warp-softmax"}) {
          const at::Tensor copy = scores.clone();
          const SoftmaxCall own{.scores = copy,
                                .bias = nullptr,
                                .rows = rows,
                                .upcast = call.upcast,
                                .unscale = call.unscale,
                                .workspace = workspace_};
          const at::Tensor got = plan_of(std::string("causal,+") + variant).softmax.factory()()->forward(own);
          EXPECT_LT(difference(got, expected), kernel_tolerance(dtype)) << variant << " " << dtype << " L " << L;
          EXPECT_FALSE(got.masked_select(hidden).any().item<bool>()) << variant << ": a hidden key has a weight";
        }
      }
    }
  }
}

TEST_F(CudaKernels, NormRoundsTheSumFirstAndNormsIt) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t width : {1, 12, 48, 255, 256, 768, 2048, 6144, 20000}) {
      const at::Tensor weight = random({width}, "weight", dtype);
      const at::Tensor bias = random({width}, "bias", dtype);
      const NormWeights weights{.weight = weight, .bias = &bias, .epsilon = 1e-5};
      const at::Tensor residual = random({5, 2, width}, "residual", dtype) * 3;
      const at::Tensor addend = random({5, 2, width}, "addend", dtype);
      const auto own = plan_of("causal,+fused-layer-norm").residual_norm.factory()(weights);
      const auto reference = reference_plan().residual_norm.factory()(weights);
      const NormedResidual got = own->forward(addend, residual, workspace_);
      const NormedResidual expected = reference->forward(addend, residual, workspace_);
      EXPECT_TRUE(at::equal(got.residual, expected.residual)) << dtype << " " << width;
      EXPECT_LT(difference(got.normed, expected.normed), kernel_tolerance(dtype)) << dtype << " " << width;
      EXPECT_LT(difference(own->norm(residual, workspace_), reference->norm(residual, workspace_)),
                kernel_tolerance(dtype))
          << dtype << " " << width;
      EXPECT_FALSE(own->norm(at::ones_like(residual), workspace_).isnan().any().item<bool>()) << "of a constant row";
    }
  }
}

TEST_F(CudaKernels, NormsOfAllKindsAreTheReferences) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const NormKind kind : {NormKind::rms, NormKind::rms_plus_one}) {
      const at::Tensor weight = random({576}, "weight", dtype);
      const NormWeights weights{.kind = kind, .weight = weight, .bias = nullptr, .epsilon = 1e-5};
      const at::Tensor residual = random({5, 2, 576}, "residual", dtype) * 3;
      const at::Tensor addend = random({5, 2, 576}, "addend", dtype);
      const NormedResidual got =
          plan_of("causal,+fused-layer-norm").residual_norm.factory()(weights)->forward(addend, residual, workspace_);
      const NormedResidual expected =
          reference_plan().residual_norm.factory()(weights)->forward(addend, residual, workspace_);
      EXPECT_TRUE(at::equal(got.residual, expected.residual)) << dtype;
      EXPECT_LT(difference(got.normed, expected.normed), kernel_tolerance(dtype)) << dtype;
    }
  }
}

TEST_F(CudaKernels, RotaryTurnsAndNormsAsTheReferenceDoes) {
  const AttentionShape shape{.heads = 6, .kv_heads = 2, .head_dim = 80};
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t dims : {20, 80}) {
      const auto options = at::TensorOptions(dtype).device(at::Device("cuda:0"));
      const at::Tensor query_norm = random({80}, "query norm", dtype);
      const at::Tensor key_norm = random({80}, "key norm", dtype);
      RotaryWeights weights{.shape = shape, .table = rotary_table({.theta = 10000, .dims = dims}, 64, options)};
      weights.query_norm.emplace(
          NormWeights{.kind = NormKind::rms, .weight = query_norm, .bias = nullptr, .epsilon = 1e-6});
      weights.key_norm.emplace(
          NormWeights{.kind = NormKind::rms, .weight = key_norm, .bias = nullptr, .epsilon = 1e-6});
      const StepRows rows({9, 0, 33}, {2, 2, 1}, 64, at::Device("cuda:0"));
      const ForwardStep step{.rows = rows, .workspace = workspace_};
      const at::Tensor product = random({3, 2, (6 + 2 * 2) * 80}, "product", dtype);
      const auto parts = [](const at::Tensor& x) {
        return Projected{.query = x.narrow(2, 0, 480), .key_value = x.narrow(2, 480, 320)};
      };
      const Projected expected = reference_plan().rotary.factory()(weights)->forward(parts(product.clone()), step);
      const Projected got =
          plan_of("causal,+fused-rotary").rotary.factory()(weights)->forward(parts(product.clone()), step);
      EXPECT_LT(difference(got.query, expected.query), kernel_tolerance(dtype)) << dtype << " " << dims;
      EXPECT_LT(difference(got.key_value, expected.key_value), kernel_tolerance(dtype)) << dtype << " " << dims;
    }
  }
}

TEST_F(CudaKernels, SplitAttentionIsTheReferencesForAnyHeadsAndLengths) {
  struct Heads {
    std::int64_t kv_heads;
    std::int64_t heads;
    std::int64_t head_dim;
  };
  for (const Heads& shape : {Heads{1, 16, 128}, Heads{1, 48, 128}, Heads{4, 4, 64}, Heads{2, 6, 80}, Heads{1, 4, 12},
                             Heads{1, 8, 256}, Heads{1, 3, 33}}) {
    ModelConfig config;
    config.kv_heads = shape.kv_heads;
    config.heads = shape.heads;
    config.head_dim = shape.head_dim;
    config.hidden_size = shape.heads * shape.head_dim;
    const std::int64_t G = shape.kv_heads;
    const std::int64_t k = shape.head_dim;
    for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
      for (const std::int64_t longest : {1, 31, 32, 33, 500, 2048}) {
        const std::vector<std::int64_t> past{longest - 1, (longest - 1) / 3, 0};
        const StepRows rows(past, {1, 1, 1}, 8192, at::Device("cuda:0"));
        const at::Tensor query = random({3, 1, shape.heads * k}, "query", dtype);
        // Keys and values side by side and more slots than are shown, as a merged cache with room to spare has them.
        const at::Tensor merged = random({3, longest + 5, 2 * G * k}, "merged", dtype).narrow(1, 0, longest);
        const at::Tensor keys = merged.narrow(2, 0, G * k);
        const at::Tensor values = merged.narrow(2, G * k, G * k);
        const AttentionCall call{
            .layer = 1, .query = query, .keys = keys, .values = values, .rows = rows, .workspace = workspace_};
        const EnginePlan reference = reference_plan();
        const EnginePlan own = plan_of("causal,+split-kv-decode");
        const auto attend = [&](const EnginePlan& plan) {
          return plan.decode_attention.factory()(attention_shape(config), plan.softmax.factory())->forward(call);
        };
        EXPECT_LT(difference(attend(own), attend(reference)), 2 * kernel_tolerance(dtype))
            << dtype << ": " << shape.heads << " heads of " << k << ", " << G << " key heads, " << longest << " keys";
      }
    }
  }
}

}  // namespace
}  // namespace decodelab
