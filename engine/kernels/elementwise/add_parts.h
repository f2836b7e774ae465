// Sums of arrays, element by element.
#pragma once

#include <cstdint>
#include <span>

#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/element_type.h"

namespace decodelab {

/// Writes `count` sums over all parts, at least two, in their order: computed in fp32 and rounded once to `dtype`, the
/// nearest, of two alike the even one. A NaN stays one. Every instruction set gives the same bits.
void add_parts(void* sums, std::span<const void* const> parts, std::int64_t count, ElementType dtype, CpuIsa isa);

}  // namespace decodelab
