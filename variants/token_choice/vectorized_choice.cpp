// Chooses the tokens of all rows with one reduction and one read-back.
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_choice.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class VectorizedChoice final : public TokenChoice {
 public:
  ChosenTokens choose(const at::Tensor& logits) const override {
    ChosenTokens chosen{.host = {}, .device = logits.argmax(-1, /*keepdim=*/true)};
    const at::Tensor host = chosen.device.cpu();
    chosen.host.assign(host.const_data_ptr<std::int64_t>(), host.const_data_ptr<std::int64_t>() + host.numel());
    return chosen;
  }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_choice.bind("vectorized-choice", [] { return std::make_unique<VectorizedChoice>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return {{"op.aten::argmax", counted.steps}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "vectorized-choice",
    .summary = "All rows choose their tokens in one operation, with one copy to the host a step.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 2",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
