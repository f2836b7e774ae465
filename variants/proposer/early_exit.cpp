// Lets the first layers of the model guess.
#include <memory>

#include <fmt/format.h>

#include "variants/proposer/draft_proposer.h"
#include "variants/proposer/proposer_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "early-exit";
constexpr std::int64_t kDefaultTokens = 4;
constexpr std::int64_t kMostLayers = 512;

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  plan.proposer.bind(
      kName, {.make = [=](const ProposerOptions& options) { return std::make_unique<DraftProposer>(options, tokens); },
              .from = GuessesFrom::model,
              .shared = parameters.integer("shared") == 1,
              .first_layers = parameters.integer("layers")});
}

std::string unsupported(const RunsOn& where) {
  const std::int64_t layers = where.plan->proposer.value().first_layers;
  if (layers > where.config.layers) {
    return fmt::format("it needs {} layers, and the model has {}", layers, where.config.layers);
  }
  return reason_against_draft(where);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "The model's first layers guess what comes next: the last norm and the head read what they leave.",
    .source = "Draft & Verify (Zhang et al. 2023, arXiv:2309.08168), without a search for the layers to skip; a model "
              "that was not trained for it guesses badly (LayerSkip, Elhoushi et al. 2024, arXiv:2404.16710)",
    .parameters = {guesses_parameter(kDefaultTokens),
                   {.name = "layers",
                    .default_value = 1,
                    .minimum = 1,
                    .maximum = kMostLayers,
                    .help = "layers that guess, from the first"},
                   shared_parameter()},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, true); },
    .unsupported = unsupported,
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
