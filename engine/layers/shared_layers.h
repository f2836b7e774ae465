// Parts of layers of which each rank computes some: a rank's product, and what brings the ranks together.
#pragma once

#include <memory>

#include "engine/layers/linear.h"
#include "engine/layers/mlp.h"
#include "engine/layers/ranks.h"

namespace decodelab {

/// Return `part` followed by a sum over ranks, which outlive it.
std::unique_ptr<Linear> summed_over_ranks(std::unique_ptr<Linear> part, Ranks& ranks);
std::unique_ptr<Mlp> summed_over_ranks(std::unique_ptr<Mlp> part, Ranks& ranks);
/// Returns a head of which `part` is this rank's, Ranks::head().
std::unique_ptr<Linear> head_of_ranks(std::unique_ptr<Linear> part, Ranks& ranks);

}  // namespace decodelab
