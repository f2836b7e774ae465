// The activation of a gated MLP and its multiplication, in one pass over what the product left.
#pragma once

#include "engine/kernels/activation.h"

namespace at {
class Tensor;
}

namespace decodelab {

class Workspace;

/// Returns activation(gate) * up, computed in fp32 and rounded once: [.., 2 I], the gate first, -> [.., I]. Throws
/// std::invalid_argument on a GPU in a build without CUDA.
at::Tensor gate(const at::Tensor& gate_and_up, Activation activation, Workspace& workspace);

}  // namespace decodelab
