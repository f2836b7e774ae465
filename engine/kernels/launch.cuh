// Launches of kernels and their dynamic shared memory, in a form that g++ compiles too: tests/cuda_on_cpu runs the same
// .cu files on a CPU.
#pragma once

// Without a CUDA compiler these names come from tests/cuda_on_cpu/cuda_on_cpu.h, which is included before the kernel's
// file.
#if defined(__CUDACC__)

#include <cstddef>

namespace decodelab {

/// Keeps an argument out of template deduction, so that it converts to the kernel's parameter as in any call.
template <typename T>
struct ParameterOf {
  using Type = T;
};

/// Starts `kernel` on `stream`, as kernel<<<grid, block, shared_bytes, stream>>>(arguments...) does.
template <typename... Parameters>
void launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   typename ParameterOf<Parameters>::Type... arguments) {
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
}

namespace device {

/// Returns the dynamic shared memory of the block, aligned to 16 bytes.
template <typename T>
__device__ inline T* dynamic_shared() {
  extern __shared__ float4 dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory);
}

/// Cuts the dynamic shared memory of a block into ranges, front to back and without gaps. Each thread makes its own and
/// takes the same ranges in the same order. The names are for tests: on a CPU an index that leaves its range is an
/// error that names the range.
class SharedRanges {
 public:
  /// Returns the next `count` elements. The caller keeps them aligned, by the sizes of the ranges before them.
  template <typename T>
  __device__ T* take(const char* /*name*/, int count) {
    T* const range = reinterpret_cast<T*>(next_);
    next_ += static_cast<std::size_t>(count) * sizeof(T);
    return range;
  }

 private:
  char* next_ = dynamic_shared<char>();
};

}  // namespace device
}  // namespace decodelab

#endif
