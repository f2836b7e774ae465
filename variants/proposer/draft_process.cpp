// Lets another model guess in a process of its own.
#include <memory>

#include "engine/sequences/proposer.h"
#include "variants/proposer/proposer_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "draft-process";
constexpr std::int64_t kDefaultTokens = 8;

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  plan.proposer.bind(
      kName,
      {.make = [=](const ProposerOptions& options) { return options.apart(options.rows, options.max_tokens, tokens); },
       .from = GuessesFrom::model,
       .draft = parameters.word("draft"),
       .apart = true});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "As draft-model, greedily and in a process of its own, which decodes by native.",
    .source = "two models served side by side: what the discussion of speculation for text-generation-inference weighs",
    .parameters = {guesses_parameter(kDefaultTokens), draft_parameter()},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, true); },
    .unsupported = [](const RunsOn& where) { return reason_against_draft(where); },
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
