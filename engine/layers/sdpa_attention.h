// Attention by one of libtorch's fused kernels. The caller names the kernel; libtorch does not choose.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/layers/layer_slots.h"

namespace decodelab {

/// The kernels behind scaled_dot_product_attention. On a CPU there is `flash` alone.
enum class SdpaKernel : std::uint8_t { flash, efficient, cudnn };

/// Makes attention that handles a prefill from position 0, where the kernel's causal flag replaces the mask, and decode
/// steps, whose rows may have any lengths. A single key head is repeated by a stride of 0, which `efficient` copies. Of
/// several key heads fewer than the query heads, a decode step takes the query heads of each as its queries, and a
/// prefill copies keys and values once for each. On a CPU a bias, a window, and several queries that follow held keys
/// are a mask, which is made in full; elsewhere they throw std::invalid_argument, as what the kernel does not support.
std::unique_ptr<Attention> make_sdpa_attention(const AttentionShape& shape, SdpaKernel kernel, std::string variant);

/// Returns the name of the operator that a call of the kernel is counted as.
const char* sdpa_operator(SdpaKernel kernel, bool cpu);

}  // namespace decodelab
