// The masked softmax of a call by one kernel on a GPU, for the variants that differ in the kernel.
#pragma once

#include "engine/layers/softmax.h"

#include <cstdint>
#include <string>

namespace decodelab {

/// What has a row of scores to itself.
enum class SoftmaxWorker : std::uint8_t { block, warp };

/// Writes the weights over the scores. Throws std::invalid_argument in a build without CUDA.
void softmax_on_device(const SoftmaxCall& call, SoftmaxWorker worker);

/// Throws std::invalid_argument, naming `variant`, where the call has a bias.
void refuse_bias(const SoftmaxCall& call, const std::string& variant);

}  // namespace decodelab
