// What kernels see as the constants threadIdx, blockIdx, blockDim and gridDim; the machine sets them before a thread
// goes on.
#pragma once

#include <cuda_runtime.h>

extern uint3 threadIdx;
extern uint3 blockIdx;
extern uint3 blockDim;
extern uint3 gridDim;
