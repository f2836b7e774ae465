// libtorch's product by weights of 8 bits with a scale for each output.
#include "engine/layers/linear.h"
#include "engine/layers/prepared_weights.h"
#include "engine/tensor.h"
#include "variants/linear/aten_linear.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Weights as q * scale, q from -127 to 127.
struct Int8Weights {
  at::Tensor codes;   ///< [N, K] int8
  at::Tensor scales;  ///< [N] in the model's dtype
};

class AtenInt8Linear final : public AtenLinear {
 public:
  AtenInt8Linear(const LinearWeights& weights, std::shared_ptr<const Int8Weights> held)
      : AtenLinear(weights, held->codes.nbytes() + held->scales.nbytes()), held_(std::move(held)) {}

  at::Tensor dequantized() const override {
    return held_->codes.to(at::kFloat) * held_->scales.to(at::kFloat).unsqueeze(1);
  }

 protected:
  at::Tensor product(const at::Tensor& rows) const override {
    return at::_weight_int8pack_mm(rows, held_->codes, held_->scales);
  }

 private:
  std::shared_ptr<const Int8Weights> held_;
};

std::unique_ptr<Int8Weights> rounded(const LinearWeights& weights) {
  const at::Tensor dense = weights.read();
  const at::Tensor values = dense.to(at::kFloat);
  const at::Tensor scales = (values.abs().amax(1) / 127).clamp_min(1e-30);
  return std::make_unique<Int8Weights>(
      Int8Weights{.codes = (values / scales.unsqueeze(1)).round().clamp(-127, 127).to(at::kChar).contiguous(),
                  .scales = scales.to(dense.scalar_type())});
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.linear.bind("aten-int8-linear", [](const LinearWeights& weights, PreparedWeights& prepared) {
    return std::make_unique<AtenInt8Linear>(
        weights, prepared.prepare<Int8Weights>("aten int8 " + weights.name,
                                               static_cast<std::size_t>(weights.outputs * (weights.inputs + 4)),
                                               [&] { return rounded(weights); }));
  });
}

std::vector<Expectation> expects(const CountedSteps&, const Parameters&) {
  // libtorch's kernels allocate what they return.
  return {{"op.aten::linear", 0}, {"mlp.allocations", std::nullopt}, {"projection.allocations", std::nullopt}};
}

std::string unsupported(const RunsOn& where) { return other_shape(where.config); }

[[maybe_unused]] const bool registered = register_variant({
    .name = "aten-int8-linear",
    .summary = "Rounds weights to 8 bits with a scale for each output; libtorch's kernel raises them again as it "
               "multiplies.",
    .source = "PyTorch: aten::_weight_int8pack_mm; gpt-fast (github.com/meta-pytorch/gpt-fast)",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .apply = apply,
    .fidelity = {.logit_bound = 0.05, .held_to = "+rounded-linear:of=aten-int8-linear"},
});

}  // namespace
}  // namespace decodelab
