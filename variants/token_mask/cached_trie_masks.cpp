// Walks over the tree of tokens once for each state of a pattern, and keeps what it found.
#include "engine/masks/token_mask.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// The masks stand in the states of the automaton, are shared by all rows and samples of a pattern, and go with the
/// states when those take too much memory.
class CachedTrieMasks final : public TokenMask {
 public:
  explicit CachedTrieMasks(const TokenMaskOptions& options) : TokenMask(options) {}

  void find_allowed(ByteDfa::State& state, MaskBits& bits) override {
    if (state.kept.size() == bits.words().size()) {
      count_amount(Amount::kept_masks, 1);
      bits.words() = state.kept;
      return;
    }
    count_amount(Amount::walked_masks, 1);
    walk(state, bits);
    state.kept = bits.words();
    dfa().keep(state.kept.size() * sizeof(state.kept.front()));
  }
};

/// The rows of a prefill begin in one state, whose mask is found once; later ones may all be in states of their own.
std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  const std::int64_t rows = counted.batch_size * counted.samples;
  if (!counted.masked || (counted.phase == Phase::prefill && rows == 1)) {
    return {};
  }
  return {{"kept_masks", counted.phase == Phase::prefill ? counted.steps * (rows - 1) : 1, true}};
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_mask.bind("cached-trie-masks",
                       [](const TokenMaskOptions& options) { return std::make_unique<CachedTrieMasks>(options); });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "cached-trie-masks",
    .summary =
        "The mask of each state of a pattern is found once, by a walk over the tree of tokens, and shared by rows.",
    .source = "llguidance's trie; Outlines' index (Willard and Louf 2023, arXiv:2307.09702), of states that are met",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
