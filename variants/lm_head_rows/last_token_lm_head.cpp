// Runs the language-model head on each prompt's last token only.
#include "engine/layers/lm_head_rows.h"
#include "engine/sampling/token_details.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class LastTokenRows final : public LmHeadRows {
 public:
  /// A caller who asked for details of the prompt needs all positions; nobody else does.
  bool all_positions(const DetailsRequest& requested) const override { return requested.prompt.any(); }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.lm_head_rows.bind("last-token-lm-head", [] { return std::make_unique<LastTokenRows>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::prefill || counted.details.prompt.any()) {
    return {};  // a decode step has one position a row
  }
  return {{"lm_head_rows", counted.batch_size * counted.steps}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "last-token-lm-head",
    .summary = "Prefill computes logits for the last token of each prompt, unless details of prompts were asked for.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 5",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
