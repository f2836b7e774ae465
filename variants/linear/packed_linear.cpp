// Weights packed once: products of few rows read them at the speed of memory, products of many multiply at the speed of the cores.
#include "engine/kernels/elementwise/activate.h"
#include "engine/kernels/products/packed_matrix.h"
#include "engine/layers/linear.h"
#include "engine/layers/onednn_linear.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/step_memory.h"
#include "engine/kernels/scalar_type.h"
#include "engine/tensor.h"
#include "variants/registry.h"

#include <memory>
#include <optional>

namespace decodelab {
namespace {

/// Activations that are worth another thread.
constexpr std::int64_t kElementsOfATask = 16384;

class PackedLinear final : public Linear {
 public:
  PackedLinear(const LinearWeights& weights, std::shared_ptr<const PackedMatrix> packed,
               std::shared_ptr<const OneDnnLinear> many_rows)
      : weight_(weights.weight),
        packed_(std::move(packed)),
        many_rows_(std::move(many_rows)),
        isa_(best_cpu_isa(packed_->dtype())) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  at::Tensor forward(const at::Tensor& x, StepMemory& memory) const override { return multiply(x, {}, memory); }

  at::Tensor activated(const at::Tensor& x, Activation activation, StepMemory& memory) const override {
    return multiply(x, activation, memory);
  }

 private:
  at::Tensor multiply(const at::Tensor& x, std::optional<Activation> activation, StepMemory& memory) const {
    const std::int64_t inputs = packed_->inputs();
    const std::int64_t rows = x.numel() / inputs;
    const bool packed = rows <= kFewRows || multiplies_many_rows(packed_->order());
    if (!packed && many_rows_ != nullptr) {
      return many_rows_->forward(x, bias_, activation);
    }
    if (!packed) {
      at::Tensor y = at::linear(x, weight_, bias_);
      if (activation) {
        activate_all(y, *activation);
      }
      return y;
    }
    const at::Tensor flat = x.reshape({rows, inputs}).contiguous();
    at::Tensor y = memory.take_rows(x, packed_->outputs());
    const SkinnyProduct product{.weights = *packed_,
                                .x = flat.const_data_ptr(),
                                .x_stride = inputs,
                                .rows = rows,
                                .bias = bias_ ? bias_->const_data_ptr() : nullptr,
                                .y = y.mutable_data_ptr(),
                                .y_stride = packed_->outputs(),
                                .activation = activation};
    at::parallel_for(0, packed_->panels(), 1,
                     [&](std::int64_t first, std::int64_t last) { multiply_panels(product, first, last, isa_); });
    return y;
  }

  void activate_all(const at::Tensor& y, Activation activation) const {
    auto* data = static_cast<std::byte*>(y.mutable_data_ptr());
    const std::int64_t size = y.element_size();
    at::parallel_for(0, y.numel(), kElementsOfATask, [&](std::int64_t first, std::int64_t last) {
      activate_in_place(data + first * size, last - first, packed_->dtype(), activation, isa_);
    });
  }

  at::Tensor weight_;
  std::optional<at::Tensor> bias_;
  std::shared_ptr<const PackedMatrix> packed_;
  std::shared_ptr<const OneDnnLinear> many_rows_;  ///< Null where there is no such kernel, or ours does.
  CpuIsa isa_;
};

std::unique_ptr<Linear> make_packed_linear(const LinearWeights& weights, PreparedWeights& prepared) {
  auto packed = prepared.get<PackedMatrix>("packed " + weights.name, weights.weight.nbytes(), [&] {
    const at::Tensor dense = weights.weight.contiguous();
    const ElementType dtype = dense.scalar_type() == at::kFloat ? ElementType::float32 : ElementType::bfloat16;
    auto matrix =
        std::make_unique<PackedMatrix>(dense.size(0), dense.size(1), dtype, weight_order(best_cpu_isa(dtype)));
    // The threads that will read a panel write it: its pages then lie where they are read.
    at::parallel_for(0, matrix->panels(), 1,
                     [&](std::int64_t first, std::int64_t last) { matrix->fill(dense.const_data_ptr(), first, last); });
    return matrix;
  });
  std::shared_ptr<const OneDnnLinear> many_rows;
  if (!multiplies_many_rows(packed->order())) {
    many_rows = prepared.get<OneDnnLinear>("onednn " + weights.name, weights.weight.nbytes(),
                                           [&] { return OneDnnLinear::make(weights.weight); });
  }
  return std::make_unique<PackedLinear>(weights, std::move(packed), std::move(many_rows));
}

void apply(EnginePlan& plan, const Parameters&) { plan.linear.bind("packed-linear", make_packed_linear); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  const std::int64_t rows = counted.batch_size * (counted.phase == "prefill" ? counted.length : 1);
  if (rows > kFewRows && !multiplies_many_rows(weight_order(best_cpu_isa(counted.dtype)))) {
    // oneDNN makes its outputs, and on some processors a tensor to work in.
    return {{"mlp.allocations", std::nullopt}, {"projection.allocations", std::nullopt}};
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
    .summary = "Packs the weights once: up to 32 rows are multiplied by kernels that read them once, in order, more by "
               "oneDNN's, or on tiles where the processor has them.",
    .source = "GotoBLAS (Goto and van de Geijn 2008, doi:10.1145/1356052.1356053), for few rows; oneDNN for many",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
