// The arg-max of each row.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// Writes the arg-max of `width` numbers in fp32, fp16 or bf16 in each of rows [first, last), which are `stride`
/// elements apart. Of equal numbers the lowest index wins; a NaN counts as higher than any number, so that it is
/// noticed.
void arg_max_of_rows(const void* numbers, std::int64_t width, std::int64_t stride, ElementType dtype,
                     std::int64_t first, std::int64_t last, std::int64_t* indices, CpuIsa isa);

}  // namespace decodelab
