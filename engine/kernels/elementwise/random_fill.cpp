// Computes random tensors where they are needed: on the host, or by a kernel on the device.
#include "engine/kernels/elementwise/random_fill.h"

#include <stdexcept>

#include "engine/kernels/elementwise/random_fill.cuh"
#include "engine/kernels/elementwise/uniform_fill.h"
#include "engine/tensor.h"

namespace decodelab {

at::Tensor random_uniform(const std::vector<std::int64_t>& shape, std::uint64_t seed, std::uint64_t stream_number,
                          const std::string& device) {
  at::Tensor values = at::empty(shape, at::TensorOptions(at::kFloat).device(at::Device(device)));
  auto* data = values.mutable_data_ptr<float>();
  if (values.is_cpu()) {
    fill_uniform({data, static_cast<std::size_t>(values.numel())}, seed, stream_number, 0, 0.0f, 1.0f);
    return values;
  }
#ifdef DECODELAB_HAS_CUDA
  const c10::cuda::CUDAGuard guard(values.device());
  launch_random_fill(data, values.numel(), seed, stream_number, 0.0f, 1.0f, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return values;
#else
  throw std::invalid_argument("random tensors on " + device + " need a build with CUDA");
#endif
}

}  // namespace decodelab
