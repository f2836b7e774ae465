// Shares a model among threads.
#include "variants/communicator/ranks_variant.h"

namespace decodelab {
namespace {

[[maybe_unused]] const bool registered = register_ranks_variant(
    {
        .name = "thread-ranks",
        .summary =
            "Shares the model among ranks in threads of one process, which sum what layers add (tensor parallelism).",
        .source = "Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053)",
    },
    {.run = RanksRun::threads});

}  // namespace
}  // namespace decodelab
