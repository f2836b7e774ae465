// The element types of the CUDA kernels as libtorch knows them, and the stream that they run on.
#pragma once

#include "engine/kernels/device_kernels.h"
#include "engine/tensor.h"

namespace decodelab {

inline DeviceElement device_element(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return DeviceElement::float16;
    case at::kBFloat16: return DeviceElement::bfloat16;
    default: return DeviceElement::float32;
  }
}

#ifdef DECODELAB_HAS_CUDA
/// Returns the number of multiprocessors of the device that a tensor is on.
inline std::int64_t processors_of(const at::Tensor& where) {
  int processors = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, where.device().index()));
  return processors;
}

/// Calls `launch` with the current stream of the device of `where`, and throws if the launch failed.
template <typename Launch>
void on_stream_of(const at::Tensor& where, Launch&& launch) {
  const c10::cuda::CUDAGuard guard(where.device());
  launch(c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
#endif

}  // namespace decodelab
