// The reference's product by weights as another variant rounds them.
#include <algorithm>
#include <stdexcept>

#include "engine/kernels/scalar_type.h"
#include "engine/layers/linear.h"
#include "engine/layers/prepared_weights.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

const Variant& variant_of(const Parameters& parameters) {
  const std::string& name = parameters.word("of");
  const auto found = registered_variants().find(name);
  if (found == registered_variants().end() || found->second.fidelity.held_to.empty()) {
    std::string known;
    for (const auto& [other, variant] : registered_variants()) {
      if (!variant.fidelity.held_to.empty()) {
        known += (known.empty() ? "" : ", ") + other;
      }
    }
    throw std::invalid_argument("rounded-linear:of=" + name + ": expected a variant that rounds weights: " + known);
  }
  return found->second;
}

std::unique_ptr<Linear> make_rounded_linear(const Variant& variant, LinearWeights weights, PreparedWeights& prepared) {
  weights.gated = false;
  EnginePlan plan;
  variant.apply(plan, complete_parameters(variant, {}));
  // Made before, since weights are prepared one at a time.
  const std::unique_ptr<Linear> rounded = plan.linear.factory()(weights, prepared);
  auto values = prepared.prepare<at::Tensor>(variant.name + " as numbers " + weights.name, weights.bytes(), [&] {
    return std::make_unique<at::Tensor>(rounded->dequantized().to(scalar_type(weights.dtype)));
  });
  weights.load = [values]() -> const at::Tensor& { return *values; };
  return make_plain_linear(weights, prepared);
}

void apply(EnginePlan& plan, const Parameters& parameters) {
  const Variant& variant = variant_of(parameters);
  plan.linear.bind("rounded-linear", [&variant](const LinearWeights& weights, PreparedWeights& prepared) {
    return make_rounded_linear(variant, weights, prepared);
  });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "rounded-linear",
    .summary = "Multiplies as the reference does, by weights as another variant rounds them: what rounding weights "
               "alone costs, and what the kernels of that variant are held to.",
    .source = "a control",
    .parameters = {{.name = "of", .help = "variant that rounds weights", .default_word = "int8-linear"}},
    .apply = apply,
    .fidelity = {.logit_bound = 0.9},
});

}  // namespace
}  // namespace decodelab
