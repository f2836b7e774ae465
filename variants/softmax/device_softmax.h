// What the variants of the softmax share: a kernel on a GPU, their proof, and their conflicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/softmax.h"
#include "variants/registry.h"

namespace decodelab {

/// The threads that process one row of scores.
enum class SoftmaxWorker : std::uint8_t { block, warp };

/// Computes the softmax on a GPU and writes the weights over the scores. Throws std::invalid_argument in a build
/// without CUDA.
void softmax_on_device(const SoftmaxCall& call, SoftmaxWorker worker);

/// Throws std::invalid_argument, naming `variant`, where the call has a bias.
void refuse_bias(const SoftmaxCall& call, const std::string& variant);

/// Returns the proof of a softmax variant: libtorch's softmax is not called where attention writes scores out.
std::vector<Expectation> softmax_expected(const CountedSteps& counted, const Parameters& parameters);
/// Returns why no kernel of a softmax can run there, in one sentence; empty if they can.
std::string softmax_unsupported(const RunsOn& where);
/// Returns why `variant` has nothing to do (neither attention writes scores out), in one sentence; empty if it has
/// something to do.
std::string softmax_conflict(const std::string& variant, const EnginePlan& plan);

}  // namespace decodelab
