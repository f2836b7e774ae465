// The scan of logits on a GPU.
#pragma once

#include "engine/sampling/top_tokens.h"

namespace decodelab {

/// Starts the kernels of engine/kernels/elementwise/scan_logits.cu and asynchronous copies of what they find, which the
/// result waits for: the host can start the next step meanwhile. Throws std::invalid_argument in a build without CUDA.
PendingDetails scan_on_device(const DetailsTask& task);

}  // namespace decodelab
