// Lets another model guess.
#include <memory>

#include "variants/proposer/draft_proposer.h"
#include "variants/proposer/proposer_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "draft-model";
constexpr std::int64_t kDefaultTokens = 8;

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  plan.proposer.bind(
      kName, {.make = [=](const ProposerOptions& options) { return std::make_unique<DraftProposer>(options, tokens); },
              .from = GuessesFrom::model,
              .draft = parameters.word("draft"),
              .shared = parameters.integer("shared") == 1});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "A smaller model guesses what comes next; --draft NAME=MODEL names it, and `self` is the model itself.",
    .source = "Leviathan et al. 2023 (arXiv:2211.17192); Chen et al. 2023 (arXiv:2302.01318)",
    .parameters = {guesses_parameter(kDefaultTokens), draft_parameter(), shared_parameter()},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, true); },
    .unsupported = [](const RunsOn& where) { return reason_against_draft(where); },
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
