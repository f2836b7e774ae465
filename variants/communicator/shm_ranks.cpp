// Shares a model among processes of one machine.
#include "variants/communicator/ranks_variant.h"

namespace decodelab {
namespace {

[[maybe_unused]] const bool registered = register_ranks_variant(
    {
        .name = "shm-ranks",
        .summary = "Shares the model among ranks in processes of their own, which sum over shared memory (tensor "
                   "parallelism).",
        .source = "Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053); vLLM's shared-memory all-reduce for CPUs",
    },
    {.run = RanksRun::processes});

}  // namespace
}  // namespace decodelab
