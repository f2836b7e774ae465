// The activation functions that kernels and model families know.
#pragma once

#include <cstdint>

namespace decodelab {

enum class Activation { gelu_tanh, gelu_erf };

}  // namespace decodelab
