// Products by weights of 8 or 4 bits: what the variants of that kind share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/products/coded/coded_matrix.h"
#include "engine/layers/linear.h"
#include "variants/registry.h"

namespace decodelab {

/// Rounds weights once, when the engine is built, and lets go of them.
std::shared_ptr<const CodedMatrix> rounded_matrix(const LinearWeights& weights, PreparedWeights& prepared,
                                                  WeightCode code);

/// Returns products by matrices whose outputs stand one after the other; a gated one is alone. Activations are rounded
/// to 8 bits, in groups of 32 inputs, and codes are multiplied as integers.
std::unique_ptr<Linear> make_coded_linear(const LinearWeights& weights,
                                          std::vector<std::shared_ptr<const CodedMatrix>> parts);

/// Returns what proves such products: libtorch's own, which the reference calls, is not called.
std::vector<Expectation> coded_linear_expects(const CountedSteps& counted, const Parameters& parameters);

std::string coded_linear_unsupported(const RunsOn& where);

}  // namespace decodelab
