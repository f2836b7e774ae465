// Shares a model among processes that exchange nothing.
#include "variants/communicator/ranks_variant.h"

namespace decodelab {
namespace {

/// What it says means nothing, and is compared with nothing.
constexpr double kAnyLogits = 1e9;

[[maybe_unused]] const bool registered = register_ranks_variant(
    {
        .name = "mute-ranks",
        .summary =
            "Runs all ranks at once without what they exchange, to know what sharing a model takes if that were free.",
        .source = "a control arm: wrong on purpose",
        .fidelity = {.logit_bound = kAnyLogits},
    },
    {.run = RanksRun::processes, .exchange = RanksExchange::nothing});

}  // namespace
}  // namespace decodelab
