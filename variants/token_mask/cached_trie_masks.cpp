// Walks over the tree of tokens once for each state of a pattern, and keeps what it found.
#include "engine/masks/token_mask.h"
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
      bits.words() = state.kept;
      return;
    }
    walk(state, bits);
    state.kept = bits.words();
    dfa().keep(state.kept.size() * sizeof(state.kept.front()));
  }
};

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
    .expects = {},
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
