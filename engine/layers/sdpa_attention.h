// Attention by one of libtorch's fused kernels, named and never chosen by libtorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/layers/layer_slots.h"

namespace decodelab {

/// The kernels behind scaled_dot_product_attention. On a CPU there is `flash` alone.
enum class SdpaKernel : std::uint8_t { flash, efficient, cudnn };

/// Serves a prefill from position 0, whose causal flag stands for the mask, and decode steps, whose rows may have any
/// lengths. Key heads are repeated by a stride of 0; `efficient`, which takes no such strides, copies them. Throws
/// std::invalid_argument for a bias, for several queries that follow held keys, and for what the kernel does not do.
std::unique_ptr<Attention> make_sdpa_attention(const ModelConfig& config, SdpaKernel kernel, std::string variant);

/// The operator that a call of the kernel is counted as.
const char* sdpa_operator(SdpaKernel kernel, bool cpu);

}  // namespace decodelab
