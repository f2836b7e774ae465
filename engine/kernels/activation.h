// The activation functions that kernels and model families know.
#pragma once

#include <cstdint>

namespace decodelab {

/// silu is x times its logistic function (Elfwing et al. 2017, arXiv:1702.03118).
enum class Activation { gelu_tanh, gelu_erf, silu, relu };

}  // namespace decodelab
