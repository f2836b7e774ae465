// An activation over an array.
#pragma once

#include <cstdint>

#include "engine/kernels/activation.h"
#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// Replaces `count` numbers in fp32, fp16 or bf16 by activation(number), computed in fp32.
void activate_in_place(void* data, std::int64_t count, ElementType dtype, Activation activation, CpuIsa isa);

}  // namespace decodelab
