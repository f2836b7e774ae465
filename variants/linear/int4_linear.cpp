// Products by weights of 4 bits, rounded when an engine is built.
#include "variants/linear/coded_linear.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.linear.bind("int4-linear", [](const LinearWeights& weights, PreparedWeights& prepared) {
    return make_coded_linear(weights, {rounded_matrix(weights, prepared, WeightCode::q4)});
  });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "int4-linear",
    .summary = "Rounds weights to 4 bits and activations to 8, in groups of 32, and multiplies them as integers.",
    .source = "Q4_0 of ggml (github.com/ggml-org/llama.cpp), with the scale of least squared error",
    .parameters = {},
    .expects = coded_linear_expects,
    .unsupported = coded_linear_unsupported,
    .apply = apply,
    .fidelity = {.logit_bound = 0.2, .held_to = "+rounded-linear:of=int4-linear"},
});

}  // namespace
}  // namespace decodelab
