// The numbers of the thread that runs.
#include "tests/cuda_on_cpu/thread_numbers.h"

uint3 threadIdx{0, 0, 0};
uint3 blockIdx{0, 0, 0};
uint3 blockDim{0, 0, 0};
uint3 gridDim{0, 0, 0};
