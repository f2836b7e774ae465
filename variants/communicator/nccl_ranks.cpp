// Shares a model among processes that have a GPU each.
#include "engine/checkpoint/rank_part.h"
#include "variants/communicator/ranks_variant.h"

namespace decodelab {
namespace {

std::string unsupported(const RunsOn& where) {
  if (where.device == "cpu") {
    return "NCCL exchanges between GPUs, one a rank: use --device cuda:0 where there are as many, or shm-ranks";
  }
  return reason_against_ranks(where.config, where.plan->communicator.value().ranks);
}

[[maybe_unused]] const bool registered = register_ranks_variant(
    {
        .name = "nccl-ranks",
        .summary = "Shares the model among ranks in processes of their own, with a GPU each, which sum by NCCL (tensor "
                   "parallelism).",
        .source = "Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053); NCCL's ncclAllReduce",
        .unsupported = unsupported,
    },
    {.run = RanksRun::processes, .exchange = RanksExchange::between_devices});

}  // namespace
}  // namespace decodelab
