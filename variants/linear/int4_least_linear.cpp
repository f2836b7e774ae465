// Products by weights of 4 bits above the least of their group, rounded when an engine is built.
#include "variants/linear/coded_linear.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.linear.bind("int4-least-linear", [](const LinearWeights& weights, PreparedWeights& prepared) {
    return make_coded_linear(weights, {rounded_matrix(weights, prepared, WeightCode::q4_least)});
  });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "int4-least-linear",
    .summary = "Rounds weights to 4 bits above the least weight of each group of 32, and activations to 8 bits.",
    .source = "Q4_1 of ggml (github.com/ggml-org/llama.cpp)",
    .parameters = {},
    .expects = coded_linear_expects,
    .unsupported = coded_linear_unsupported,
    .apply = apply,
    .fidelity = {.logit_bound = 0.2, .held_to = "+rounded-linear:of=int4-least-linear"},
});

}  // namespace
}  // namespace decodelab
