// Makes random tensors where they are needed: on the host, or by a kernel on the device.
#include "engine/kernels/random_fill.h"

#include "engine/checkpoint/synthetic.h"
#include "engine/kernels/random_fill.cuh"
#include "engine/tensor.h"

#include <stdexcept>

namespace decodelab {

at::Tensor random_uniform(const std::vector<std::int64_t>& shape, std::uint64_t seed, std::string_view name,
                          const std::string& device) {
  at::Tensor values = at::empty(shape, at::TensorOptions(at::kFloat).device(at::Device(device)));
  auto* data = values.mutable_data_ptr<float>();
  if (values.is_cpu()) {
    fill_synthetic({data, static_cast<std::size_t>(values.numel())}, seed, name, 0, 0.0f, 1.0f);
    return values;
  }
#ifdef DECODELAB_HAS_CUDA
  const c10::cuda::CUDAGuard guard(values.device());
  launch_random_fill(data, values.numel(), seed, synthetic_stream(name), 0.0f, 1.0f,
                     c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return values;
#else
  throw std::invalid_argument("random tensors on " + device + " need a build with CUDA");
#endif
}

}  // namespace decodelab
