// Guesses that a row goes on as it did where the longest possible run of its last tokens stood before.
#include <cstddef>
#include <map>

#include "engine/sequences/row_proposer.h"
#include "variants/proposer/proposer_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "suffix-automaton";
constexpr std::int64_t kDefaultTokens = 8;

/// The suffix automaton of a row's tokens (Blumer et al. 1985, doi:10.1016/0304-3975(85)90157-4): a token is added in
/// constant time, spread over many. A state stands for runs of tokens that end at the same places; the link of the last
/// one is the longest run at the end that also stands before.
class AutomatonRow {
 public:
  void add(std::int64_t token) {
    tokens_.push_back(token);
    const std::size_t added = new_state({.length = states_[last_].length + 1, .end = tokens_.size()});
    std::size_t state = last_;
    while (state != kNone && !states_[state].next.contains(token)) {
      states_[state].next[token] = added;
      state = states_[state].link;
    }
    if (state == kNone) {
      states_[added].link = 0;
    } else {
      const std::size_t after = states_[state].next[token];
      states_[added].link = states_[state].length + 1 == states_[after].length ? after : split(state, after, token);
    }
    last_ = added;
  }

  std::vector<std::int64_t> guess(std::int64_t most) const {
    const std::size_t before = states_[last_].link;
    if (before == kNone || before == 0 || most < 1) {
      return {};
    }
    const std::size_t begin = states_[before].end;
    const std::size_t end = std::min(tokens_.size(), begin + static_cast<std::size_t>(most));
    return {tokens_.begin() + static_cast<std::ptrdiff_t>(begin), tokens_.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  const std::vector<std::int64_t>& tokens() const { return tokens_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct State {
    std::size_t length = 0;  ///< Of the longest of its runs.
    std::size_t end = 0;     ///< How many tokens end with the first place of its runs.
    std::size_t link = kNone;
    std::map<std::int64_t, std::size_t> next{};
  };

  std::size_t new_state(State state) {
    states_.push_back(std::move(state));
    return states_.size() - 1;
  }

  /// Parts the shorter runs of `after` that end with `token` behind those of `state` from the longer ones.
  std::size_t split(std::size_t state, std::size_t after, std::int64_t token) {
    State shorter = states_[after];
    shorter.length = states_[state].length + 1;
    const std::size_t clone = new_state(std::move(shorter));
    for (; state != kNone; state = states_[state].link) {
      const auto found = states_[state].next.find(token);
      if (found == states_[state].next.end() || found->second != after) {
        break;
      }
      found->second = clone;
    }
    states_[after].link = clone;
    return clone;
  }

  std::vector<std::int64_t> tokens_;
  std::vector<State> states_{1};  ///< The first stands for no token.
  std::size_t last_ = 0;          ///< Of all tokens so far.
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  plan.proposer.bind(kName, {.make = [=](const ProposerOptions& options) {
                       return std::make_unique<RowProposer<AutomatonRow>>(options.rows, AutomatonRow(), tokens);
                     }});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "A row is guessed to go on as it did where the longest run of its last tokens stood before.",
    .source = "SAM decoding (Hu et al. 2024, arXiv:2411.10666), without its static part",
    .parameters = {guesses_parameter(kDefaultTokens)},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, false); },
    .unsupported = {},
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
