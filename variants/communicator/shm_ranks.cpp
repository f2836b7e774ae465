// Shares a model among processes of one machine.
#include "variants/communicator/ranks_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "shm-ranks";

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.communicator.bind(kName, {.ranks = parameters.integer("ranks"), .run = RanksRun::processes});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary =
        "Shares the model among ranks in processes of their own, which sum over shared memory (tensor parallelism).",
    .source = "Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053); vLLM's shared-memory all-reduce for CPUs",
    .parameters = {ranks_parameter()},
    .expects = expected_sums,
    .unsupported = reason_against_ranks_there,
    .conflict = [](const EnginePlan& plan) { return ranks_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
