// Shares a model among processes that exchange nothing.
#include "variants/communicator/ranks_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "mute-ranks";
/// What it says means nothing, and is compared with nothing.
constexpr double kAnyLogits = 1e9;

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.communicator.bind(
      kName, {.ranks = parameters.integer("ranks"), .run = RanksRun::processes, .exchange = RanksExchange::nothing});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary =
        "Runs all ranks at once without what they exchange, to know what sharing a model takes if that were free.",
    .source = "a control arm: wrong on purpose",
    .parameters = {ranks_parameter()},
    .expects = expected_sums,
    .unsupported = reason_against_ranks_there,
    .conflict = [](const EnginePlan& plan) { return ranks_conflict(kName, plan); },
    .apply = apply,
    .fidelity = {.logit_bound = kAnyLogits},
});

}  // namespace
}  // namespace decodelab
