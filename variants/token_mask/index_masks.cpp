// Finds the masks of all states of a pattern before the first token.
#include <stdexcept>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/masks/token_mask.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// What an index may take: as many masks of a vocabulary of 49,152 tokens are 30 MB, and a second of walks.
constexpr std::size_t kMostIndexedStates = 5'000;

class IndexMasks final : public TokenMask {
 public:
  explicit IndexMasks(const TokenMaskOptions& options) : TokenMask(options), pattern_(options.pattern) {}

  /// The first call makes the whole index; it knows the width.
  void find_allowed(ByteDfa::State& state, MaskBits& bits) override {
    if (!made_) {
      make_index(bits.width());
    }
    if (state.kept.empty()) {  // A state of forced tokens, which no allowed ones lead to.
      walk(state, bits);
      return;
    }
    count_amount(Amount::kept_masks, 1);
    bits.words() = state.kept;
  }

 private:
  void make_index(std::int64_t width) {
    made_ = true;
    std::vector<State> open{start()};
    std::unordered_set<const ByteDfa::State*> met{open.front().get()};
    MaskBits bits(width);
    while (!open.empty()) {
      const State state = std::move(open.back());
      open.pop_back();
      std::vector<State> ends;
      walk(*state, bits, &ends);
      state->kept = bits.words();
      kept_.push_back(state);
      if (kept_.size() > kMostIndexedStates) {
        throw std::invalid_argument(
            fmt::format("index-masks has spent its budget of {} states on the pattern {}: use cached-trie-masks, which "
                        "finds the masks that are met",
                        kMostIndexedStates, in_quotes(pattern_)));
      }
      for (State& end : ends) {
        if (met.insert(end.get()).second) {
          open.push_back(std::move(end));
        }
      }
    }
  }

  std::string pattern_;
  bool made_ = false;
  std::vector<State> kept_;  ///< So that none of them is forgotten.
};

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.masked) {
    return {};
  }
  return {{"kept_masks", counted.steps * counted.batch_size * counted.samples}};
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_mask.bind("index-masks",
                       [](const TokenMaskOptions& options) { return std::make_unique<IndexMasks>(options); });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "index-masks",
    .summary = "The masks of all states that a pattern can come to are found before the first token.",
    .source = "Outlines (Willard and Louf 2023, arXiv:2307.09702)",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
