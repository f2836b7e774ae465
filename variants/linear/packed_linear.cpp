// Weights packed once, so that products of few rows read them at the speed of memory.
#include "engine/kernels/packed_matrix.h"
#include "engine/layers/linear.h"
#include "engine/layers/prepared_weights.h"
#include "engine/scalar_type.h"
#include "engine/tensor.h"
#include "variants/registry.h"

#include <memory>
#include <optional>

namespace decodelab {
namespace {

/// Beyond so many rows a product is bound by arithmetic, and oneDNN's kernels do that better.
constexpr std::int64_t kMostRows = 32;

class PackedLinear final : public Linear {
 public:
  PackedLinear(const LinearWeights& weights, std::shared_ptr<const PackedMatrix> packed)
      : weight_(weights.weight), packed_(std::move(packed)), isa_(best_skinny_isa(packed_->dtype())) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  at::Tensor forward(const at::Tensor& x) const override {
    const std::int64_t inputs = packed_->inputs();
    const std::int64_t rows = x.numel() / inputs;
    if (rows > kMostRows) {
      return at::linear(x, weight_, bias_);
    }
    const at::Tensor flat = x.reshape({rows, inputs}).contiguous();
    auto shape = x.sizes().vec();
    shape.back() = packed_->outputs();
    at::Tensor y = at::empty(shape, x.options());
    const SkinnyProduct product{.weights = *packed_,
                                .x = flat.const_data_ptr(),
                                .x_stride = inputs,
                                .rows = rows,
                                .bias = bias_ ? bias_->const_data_ptr() : nullptr,
                                .y = y.mutable_data_ptr(),
                                .y_stride = packed_->outputs()};
    at::parallel_for(0, packed_->panels(), 1,
                     [&](std::int64_t first, std::int64_t last) { multiply_panels(product, first, last, isa_); });
    return y;
  }

 private:
  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
  std::shared_ptr<const PackedMatrix> packed_;
  SkinnyIsa isa_;
};

std::unique_ptr<Linear> make_packed_linear(const LinearWeights& weights, PreparedWeights& prepared) {
  auto packed = prepared.get<PackedMatrix>("packed " + weights.name, [&] {
    const at::Tensor dense = weights.weight.contiguous();
    const ElementType dtype = dense.scalar_type() == at::kFloat ? ElementType::float32 : ElementType::bfloat16;
    return std::make_unique<PackedMatrix>(dense.const_data_ptr(), dense.size(0), dense.size(1), dtype);
  });
  return std::make_unique<PackedLinear>(weights, std::move(packed));
}

void apply(EnginePlan& plan, const Parameters&) { plan.linear.bind("packed-linear", make_packed_linear); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.batch_size * (counted.phase == "prefill" ? counted.length : 1) > kMostRows) {
    return {};
  }
  // An operator that was not called has no counter: libtorch's own product, which the reference calls.
  return {{"op.aten::linear", 0}};
}

std::string unsupported(const RunsOn& where) {
  if (where.device != "cpu") {
    return "its kernels are for the CPU";
  }
  return where.dtype == ElementType::float16 ? "its kernels multiply fp32 and bf16" : "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "packed-linear",
    .summary =
        "Packs the weights into panels once, and multiplies up to 32 rows by kernels that read them once, in order.",
    .source = "GotoBLAS (Goto and van de Geijn 2008, doi:10.1145/1356052.1356053), for few rows",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
