// The sets of instructions that kernels are written or compiled for.
#pragma once

#include <cstdint>

#include "engine/kernels/element_type.h"

namespace decodelab {

/// Best last. `avx512_bf16` has the dot product of pairs of bf16, `amx_bf16` that of tiles too: they matter to
/// products, and tiles to attention.
enum class CpuIsa : std::uint8_t { portable, avx2, avx512, avx512_bf16, amx_bf16 };
const char* to_string(CpuIsa isa);
/// The best that this processor has for products in that type; for kernels that compute in fp32, whatever they read,
/// the default.
CpuIsa best_cpu_isa(ElementType dtype = ElementType::float32);

}  // namespace decodelab
