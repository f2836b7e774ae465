// libtorch's product by weights of 4 bits with a scale and a zero for each group of inputs.
#include <algorithm>

#include "engine/layers/linear.h"
#include "engine/layers/prepared_weights.h"
#include "engine/tensor.h"
#include "variants/linear/aten_linear.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Tiles of inputs that the kernel for GPUs takes together.
constexpr std::int64_t kInnerTiles = 2;
constexpr float kMostCode = 15;

/// Weights as (q - 8) * scale + zero, q from 0 to 15.
struct Int4Weights {
  at::Tensor codes;             ///< In the order of the device's kernel.
  at::Tensor scales_and_zeros;  ///< [K / 32, N, 2] in the model's dtype
};

/// The same before they are packed.
struct Int4Codes {
  at::Tensor codes;             ///< [N, K] int32
  at::Tensor scales_and_zeros;  ///< As above.
};

Int4Codes codes_of(const LinearWeights& weights) {
  const at::Tensor dense = weights.read();
  const at::Tensor groups = dense.to(at::kFloat).view({weights.outputs, weights.inputs / kAtenInputs, kAtenInputs});
  const at::Tensor least = groups.amin(2);
  const at::Tensor scales = ((groups.amax(2) - least) / kMostCode).clamp_min(1e-30);
  const at::Tensor codes = ((groups - least.unsqueeze(2)) / scales.unsqueeze(2)).round().clamp(0, kMostCode);
  const at::Tensor both = at::stack({scales, least + 8 * scales}, 2).transpose(0, 1);
  return {.codes = codes.to(at::kInt).view({weights.outputs, weights.inputs}),
          .scales_and_zeros = both.to(dense.scalar_type()).contiguous()};
}

class AtenInt4Linear final : public AtenLinear {
 public:
  AtenInt4Linear(const LinearWeights& weights, std::shared_ptr<const Int4Weights> held)
      : AtenLinear(weights, held->codes.nbytes() + held->scales_and_zeros.nbytes()),
        weights_(weights),
        held_(std::move(held)) {}

  at::Tensor dequantized() const override {
    const Int4Codes held = codes_of(weights_);
    const at::Tensor both = held.scales_and_zeros.to(at::kFloat).transpose(0, 1).unsqueeze(2);
    const at::Tensor groups = held.codes.view({weights_.outputs, weights_.inputs / kAtenInputs, kAtenInputs}) - 8;
    return (groups * both.select(3, 0) + both.select(3, 1)).view({weights_.outputs, weights_.inputs});
  }

 protected:
  at::Tensor product(const at::Tensor& rows) const override {
    return rows.is_cpu() ? at::_weight_int4pack_mm_for_cpu(rows, held_->codes, kAtenInputs, held_->scales_and_zeros)
                         : at::_weight_int4pack_mm(rows, held_->codes, kAtenInputs, held_->scales_and_zeros);
  }

 private:
  LinearWeights weights_;
  std::shared_ptr<const Int4Weights> held_;
};

std::unique_ptr<Int4Weights> packed(const LinearWeights& weights) {
  const Int4Codes held = codes_of(weights);
  if (held.codes.is_cpu()) {
    return std::make_unique<Int4Weights>(
        Int4Weights{.codes = at::_convert_weight_to_int4pack_for_cpu(held.codes, kInnerTiles),
                    .scales_and_zeros = held.scales_and_zeros});
  }
  // Two codes a byte, the first in the upper half.
  const at::Tensor pairs = held.codes.view({weights.outputs, weights.inputs / 2, 2});
  const at::Tensor bytes = (pairs.select(2, 0) * 16 + pairs.select(2, 1)).to(at::kByte);
  return std::make_unique<Int4Weights>(Int4Weights{.codes = at::_convert_weight_to_int4pack(bytes, kInnerTiles),
                                                   .scales_and_zeros = held.scales_and_zeros});
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.linear.bind("aten-int4-linear", [](const LinearWeights& weights, PreparedWeights& prepared) {
    return std::make_unique<AtenInt4Linear>(
        weights, prepared.prepare<Int4Weights>("aten int4 " + weights.name,
                                               static_cast<std::size_t>(weights.outputs * weights.inputs * 3 / 4),
                                               [&] { return packed(weights); }));
  });
}

std::vector<Expectation> expects(const CountedSteps&, const Parameters&) {
  // libtorch's kernels allocate what they return.
  return {{"op.aten::linear", 0}, {"mlp.allocations", std::nullopt}, {"projection.allocations", std::nullopt}};
}

std::string unsupported(const RunsOn& where) {
  if (where.device != "cpu" && where.dtype != ElementType::bfloat16) {
    return "libtorch's kernel for GPUs multiplies by 4 bits in bf16 alone";
  }
  return other_shape(where.config);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "aten-int4-linear",
    .summary = "Rounds weights to 4 bits in groups of 32 inputs; libtorch's kernel raises them again as it multiplies.",
    .source = "PyTorch: aten::_weight_int4pack_mm, aten::_weight_int4pack_mm_for_cpu; gpt-fast "
              "(github.com/meta-pytorch/gpt-fast)",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .apply = apply,
    .fidelity = {.logit_bound = 0.05, .held_to = "+rounded-linear:of=aten-int4-linear"},
});

}  // namespace
}  // namespace decodelab
