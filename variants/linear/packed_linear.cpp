// Packs weights once: products of few rows then run at the speed of memory, products of many rows at the speed of the
// cores.
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engine/kernels/products/packed_matrix.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/gate.h"
#include "engine/layers/kept_panels.h"
#include "engine/layers/linear.h"
#include "engine/layers/onednn_linear.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/uncounted.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Rows that our own kernel multiplies by all weights before the next ones, where oneDNN has none for them: their sums
/// of a panel stay in the first-level cache.
constexpr std::int64_t kRowsAtOnce = 96;

class PackedLinear final : public Linear {
 public:
  PackedLinear(const LinearWeights& weights, std::shared_ptr<const PackedMatrix> packed, PreparedWeights& prepared)
      : name_(weights.name),
        bytes_(weights.bytes()),
        read_(weights.read),
        packed_(std::move(packed)),
        prepared_(prepared),
        isa_(best_cpu_isa(packed_->dtype())) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override { return multiply(x, {}, workspace); }

  at::Tensor activated(const at::Tensor& x, Activation activation, Workspace& workspace) const override {
    return multiply(x, activation, workspace);
  }

  at::Tensor gated(const at::Tensor& x, Activation activation, Workspace& workspace) const override {
    return multiply(x, activation, workspace);
  }

 private:
  /// Returns the product by gated weights after the gate, with others after the activation.
  at::Tensor multiply(const at::Tensor& x, std::optional<Activation> activation, Workspace& workspace) const {
    const std::int64_t inputs = packed_->inputs();
    const std::int64_t rows = x.numel() / inputs;
    const bool tiles = multiplies_many_rows(packed_->order());
    if (workspace.rows_like(rows) > kFewRows && !tiles) {
      std::call_once(many_rows_made_, [this] { make_many_rows(); });
      if (many_rows_ != nullptr) {
        return packed_->gated() ? gate(many_rows_->forward(x, bias_, std::nullopt), *activation, workspace)
                                : many_rows_->forward(x, bias_, activation);
      }
    }
    const at::Tensor flat = x.reshape({rows, inputs}).contiguous();
    at::Tensor y = workspace.allocate_rows(x, packed_->results());
    const std::int64_t size = flat.element_size();
    const std::int64_t at_once = tiles ? rows : kRowsAtOnce;
    for (std::int64_t row = 0; row < rows; row += at_once) {
      const SkinnyProduct product{.weights = *packed_,
                                  .x = static_cast<const std::byte*>(flat.const_data_ptr()) + row * inputs * size,
                                  .x_stride = inputs,
                                  .rows = std::min(at_once, rows - row),
                                  .bias = bias_ ? bias_->const_data_ptr() : nullptr,
                                  .y = static_cast<std::byte*>(y.mutable_data_ptr()) + row * packed_->results() * size,
                                  .y_stride = packed_->results(),
                                  .activation = activation};
      at::parallel_for(0, packed_->panels(), 1,
                       [&](std::int64_t first, std::int64_t last) { multiply_panels(product, first, last, isa_); });
    }
    return y;
  }

  /// Called when many rows first come, since decoding alone needs no second copy of the weights. Not counted as part of
  /// the step that calls it.
  void make_many_rows() const {
    const Uncounted uncounted;
    many_rows_ =
        prepared_.prepare<OneDnnLinear>("onednn " + name_, bytes_, [&] { return OneDnnLinear::make(read_()); });
  }

  std::string name_;
  std::size_t bytes_;
  std::function<at::Tensor()> read_;
  std::optional<at::Tensor> bias_;
  std::shared_ptr<const PackedMatrix> packed_;
  PreparedWeights& prepared_;  ///< Belongs to the model, which outlives every engine.
  CpuIsa isa_;
  mutable std::once_flag many_rows_made_;
  /// Null where libtorch has no such kernel, or only a slow one: our own serves many rows then.
  mutable std::shared_ptr<const OneDnnLinear> many_rows_;
};

/// Packs the weights, or reads what an earlier process packed. Each panel is written by the threads that will read it,
/// so that its pages are placed where they are read.
std::unique_ptr<PackedMatrix> packed_matrix(const LinearWeights& weights, PackedFiles* files) {
  const ElementType dtype = weights.dtype;
  auto matrix = std::make_unique<PackedMatrix>(weights.outputs, weights.inputs, dtype,
                                               weight_order(best_cpu_isa(dtype)), weights.gated);
  fill_or_read(*matrix, weights.name, files, [&] {
    const at::Tensor dense = weights.read().contiguous();
    at::parallel_for(0, matrix->panels(), 1,
                     [&](std::int64_t first, std::int64_t last) { matrix->fill(dense.const_data_ptr(), first, last); });
  });
  return matrix;
}

std::unique_ptr<Linear> make_packed_linear(const LinearWeights& weights, PreparedWeights& prepared) {
  auto packed =
      prepared.prepare<PackedMatrix>((weights.gated ? "packed gated " : "packed ") + weights.name, weights.bytes(),
                                     [&] { return packed_matrix(weights, prepared.files()); });
  return std::make_unique<PackedLinear>(weights, std::move(packed), prepared);
}

void apply(EnginePlan& plan, const Parameters&) { plan.linear.bind("packed-linear", make_packed_linear); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  const std::int64_t rows = counted.batch_size * (counted.phase == Phase::prefill ? counted.length : 1);
  if (rows > kFewRows && !multiplies_many_rows(weight_order(best_cpu_isa(counted.dtype)))) {
    // oneDNN allocates its outputs, and on some processors a scratch tensor.
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
