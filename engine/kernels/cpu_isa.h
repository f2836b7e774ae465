// The instruction sets that kernels are written or compiled for.
#pragma once

#include <cstdint>

#include "engine/kernels/element_type.h"

namespace decodelab {

/// Names the instruction sets, the best last. `avx512_bf16` has the dot product of pairs of bf16, `amx_bf16` also the
/// product of tiles: matrix products and prefill attention use both, decode attention uses tiles.
enum class CpuIsa : std::uint8_t { portable, avx2, avx512, avx512_bf16, amx_bf16 };
const char* to_string(CpuIsa isa);
/// Returns the best set that this processor has for products in that type. Kernels that compute in fp32, whatever type
/// they read, use the default.
CpuIsa best_cpu_isa(ElementType dtype = ElementType::float32);
/// Returns whether this process may use tile registers, on a processor that has them.
bool may_use_tiles();

}  // namespace decodelab
