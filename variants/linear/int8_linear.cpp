// Products by weights of 8 bits, rounded when an engine is built.
#include "variants/linear/coded_linear.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.linear.bind("int8-linear", [](const LinearWeights& weights, PreparedWeights& prepared) {
    return make_coded_linear(weights, {rounded_matrix(weights, prepared, WeightCode::q8)});
  });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "int8-linear",
    .summary = "Rounds weights and activations to 8 bits in groups of 32, and multiplies them as integers.",
    .source = "LLM.int8() (Dettmers et al. 2022, arXiv:2208.07339); Q8_0 of ggml (github.com/ggml-org/llama.cpp)",
    .parameters = {},
    .expects = coded_linear_expects,
    .unsupported = coded_linear_unsupported,
    .apply = apply,
    // On SmolLM2, whose activations have outliers, logits in bf16 were off by 0.14 of the largest.
    .fidelity = {.logit_bound = 0.2, .held_to = "+rounded-linear:of=int8-linear"},
});

}  // namespace
}  // namespace decodelab
