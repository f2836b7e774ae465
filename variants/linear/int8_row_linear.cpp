// Products by weights of 8 bits with one scale an output, rounded when an engine is built.
#include "variants/linear/coded_linear.h"

namespace decodelab {
namespace {

/// The most inputs whose products 32 bits can sum.
constexpr std::int64_t kMostInputs = std::int64_t{1} << 16;

void apply(EnginePlan& plan, const Parameters&) {
  plan.linear.bind("int8-row-linear", [](const LinearWeights& weights, PreparedWeights& prepared) {
    return weights.inputs <= kMostInputs
               ? make_coded_linear(weights, {rounded_matrix(weights, prepared, WeightCode::q8_row)})
               : make_plain_linear(weights, prepared);
  });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "int8-row-linear",
    .summary = "Rounds weights to 8 bits by outputs and activations by rows, and multiplies them as integers.",
    .source = "ZeroQuant (Yao et al. 2022, arXiv:2206.01861): token-wise activations; W8A8 of serving engines",
    .parameters = {},
    .expects = coded_linear_expects,
    .unsupported = coded_linear_unsupported,
    .apply = apply,
    // An outlier makes the codes of all its row coarse: on SmolLM2 logits were off by 0.18 of the largest.
    .fidelity = {.logit_bound = 0.4, .held_to = "+rounded-linear:of=int8-row-linear"},
});

}  // namespace
}  // namespace decodelab
