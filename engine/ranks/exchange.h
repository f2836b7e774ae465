// Tensors that ranks exchange over the memory that they share.
#pragma once

#include <functional>

#include "engine/checkpoint/model_config.h"
#include "engine/ranks/rank_memory.h"

namespace at {
class Tensor;
}

namespace decodelab {

/// Does Ranks::sum(), or where ranks do not exchange (CommunicatorRule) only counts it. Throws RankFailed.
void sum_over(RankMemory& memory, const at::Tensor& part, bool exchanges);

/// Sends `normed`, [R, d] and contiguous, from the first rank to where it stands on the others, has each multiply it by
/// its part of the head, and returns the logits [R, V] on the first rank, [R, 0] on others. `config` is that of the
/// whole model. Where ranks do not exchange, the logits of others are 0. Throws RankFailed.
at::Tensor exchange_head(RankMemory& memory, const ModelConfig& config, const at::Tensor& normed, bool exchanges,
                         const std::function<at::Tensor(const at::Tensor&)>& part_of);

}  // namespace decodelab
