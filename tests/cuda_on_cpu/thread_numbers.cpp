// The numbers of the thread that runs.
#include "tests/cuda_on_cpu/thread_numbers.h"

uint3 threadIdx{0, 0, 0};
uint3 blockIdx{0, 0, 0};
dim3 blockDim;
dim3 gridDim;
