// The arg-max of each row.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// Writes the arg-max of `width` numbers in fp32, fp16 or bf16 in each of rows [first, last); rows follow each other at
/// `stride` elements. Of equal ones the lowest index; a NaN counts as higher than anything, so that it is seen.
void arg_max_of_rows(const void* numbers, std::int64_t width, std::int64_t stride, ElementType dtype,
                     std::int64_t first, std::int64_t last, std::int64_t* indices, CpuIsa isa);

}  // namespace decodelab
