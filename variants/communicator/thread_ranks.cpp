// Shares a model among threads.
#include "variants/communicator/ranks_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "thread-ranks";

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.communicator.bind(kName, {.ranks = parameters.integer("ranks"), .run = RanksRun::threads});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary =
        "Shares the model among ranks in threads of one process, which sum what layers add (tensor parallelism).",
    .source = "Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053)",
    .parameters = {ranks_parameter()},
    .expects = expected_sums,
    .unsupported = reason_against_ranks_there,
    .conflict = [](const EnginePlan& plan) { return ranks_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
