// What the variants of the softmax have in common: a kernel on a GPU, their proof, and what they cannot stand beside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/softmax.h"
#include "variants/registry.h"

namespace decodelab {

/// What has a row of scores to itself.
enum class SoftmaxWorker : std::uint8_t { block, warp };

/// Writes the weights over the scores. Throws std::invalid_argument in a build without CUDA.
void softmax_on_device(const SoftmaxCall& call, SoftmaxWorker worker);

/// Throws std::invalid_argument, naming `variant`, where the call has a bias.
void refuse_bias(const SoftmaxCall& call, const std::string& variant);

/// The softmax of libtorch is not called where attention writes scores out.
std::vector<Expectation> softmax_expected(const CountedSteps& counted, const Parameters& parameters);
/// Why `variant` has nothing to do: neither attention writes scores out.
std::string softmax_conflict(const std::string& variant, const EnginePlan& plan);

}  // namespace decodelab
