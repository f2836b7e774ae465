// Transposes the weights once into the order in which a row-major product reads them.
#include <memory>
#include <optional>

#include "engine/layers/linear.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class TransposedLinear final : public Linear {
 public:
  TransposedLinear(const LinearWeights& weights, std::shared_ptr<const at::Tensor> transposed)
      : transposed_(std::move(transposed)) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  at::Tensor forward(const at::Tensor& x, Workspace& workspace) const override {
    const at::Tensor flat = x.reshape({-1, transposed_->size(0)});
    const at::Tensor y = workspace.allocate_rows(x, transposed_->size(1));
    at::Tensor out = y.view({-1, transposed_->size(1)});
    bias_ ? at::addmm_out(out, *bias_, flat, *transposed_) : at::mm_out(out, flat, *transposed_);
    return y;
  }

 private:
  std::shared_ptr<const at::Tensor> transposed_;  ///< [K, N]
  std::optional<at::Tensor> bias_;
};

std::unique_ptr<Linear> make_transposed_linear(const LinearWeights& weights, PreparedWeights& prepared) {
  auto transposed = prepared.prepare<at::Tensor>("transposed " + weights.name, weights.bytes(), [&] {
    return std::make_unique<at::Tensor>(weights.read().t().contiguous());
  });
  return std::make_unique<TransposedLinear>(weights, std::move(transposed));
}

void apply(EnginePlan& plan, const Parameters&) { plan.linear.bind("transposed-linear", make_transposed_linear); }

/// Expects a count of 0 for the product that the reference calls: an operator that was not called has no counter.
std::vector<Expectation> expects(const CountedSteps&, const Parameters&) { return {{"op.aten::linear", 0}}; }

[[maybe_unused]] const bool registered = register_variant({
    .name = "transposed-linear",
    .summary = "Weights are transposed once, so that products with them are plain matrix products.",
    .source = "SantaCoder study (text-generation-inference, bigcode): FastLinear",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
