// Finds the tokens that may come by one walk over a tree of all tokens.
#include "engine/masks/token_mask.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class TrieMasks final : public TokenMask {
 public:
  explicit TrieMasks(const TokenMaskOptions& options) : TokenMask(options) {}
  void find_allowed(ByteDfa::State& state, MaskBits& bits) override {
    count_amount(Amount::walked_masks, 1);
    walk(state, bits);
  }
};

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.masked) {
    return {};
  }
  return {{"walked_masks", counted.steps * counted.batch_size * counted.samples}};
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_mask.bind("trie-masks",
                       [](const TokenMaskOptions& options) { return std::make_unique<TrieMasks>(options); });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "trie-masks",
    .summary =
        "Tokens with a common beginning are followed through a pattern together, and not below a byte that cannot "
        "come.",
    .source = "llguidance (github.com/guidance-ai/llguidance), its token trie",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
