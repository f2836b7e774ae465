// Residual and norm on the device: one block per row; each thread rereads the part of the sum that it wrote
// itself.
#include "engine/kernels/device_float.cuh"
#include "engine/kernels/elementwise/fused_norm.cuh"
#include "engine/kernels/launch.cuh"

namespace decodelab {
namespace {

using namespace device;

template <typename Element, int N>
__global__ void norm_of_block(DeviceNorm n) {
  __shared__ float scratch[kWarpThreads];
  const std::int64_t offset = static_cast<std::int64_t>(blockIdx.x) * n.width;
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * N;
  const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * N;
  const Element* summed = static_cast<const Element*>(n.residual) + offset;
  float total = 0.0f;
  if (n.addend != nullptr) {
    const Element* addend = static_cast<const Element*>(n.addend) + offset;
    Element* sum = static_cast<Element*>(n.sum) + offset;
    for (std::int64_t at = first; at < n.width; at += step) {
      Elements<Element, N> values = load<N>(summed + at);
      const Elements<Element, N> added = load<N>(addend + at);
#pragma unroll
      for (int index = 0; index < N; ++index) {
        values.of[index] = from_float<Element>(to_float(values.of[index]) + to_float(added.of[index]));
        total += to_float(values.of[index]);
      }
      store<N>(sum + at, values);
    }
    summed = sum;
  } else {
    for (std::int64_t at = first; at < n.width; at += step) {
      const Elements<Element, N> values = load<N>(summed + at);
#pragma unroll
      for (int index = 0; index < N; ++index) {
        total += to_float(values.of[index]);
      }
    }
  }
  const float width = static_cast<float>(n.width);
  const float mean = n.kind == NormKind::layer ? block_sum(total, scratch) / width : 0.0f;
  // Deviations are taken from the mean, since sums of squares would cancel.
  float squares = 0.0f;
  for (std::int64_t at = first; at < n.width; at += step) {
    const Elements<Element, N> values = load<N>(summed + at);
#pragma unroll
    for (int index = 0; index < N; ++index) {
      const float off = to_float(values.of[index]) - mean;
      squares += off * off;
    }
  }
  const float scale = 1.0f / sqrtf(block_sum(squares, scratch) / width + n.epsilon);
  const Element* weight = static_cast<const Element*>(n.weight);
  const Element* bias = static_cast<const Element*>(n.bias);
  const float added_to_weight = n.kind == NormKind::rms_plus_one ? 1.0f : 0.0f;
  Element* normed = static_cast<Element*>(n.normed) + offset;
  for (std::int64_t at = first; at < n.width; at += step) {
    Elements<Element, N> values = load<N>(summed + at);
    const Elements<Element, N> weights = load<N>(weight + at);
    Elements<Element, N> biases{};
    if (bias != nullptr) {
      biases = load<N>(bias + at);
    }
#pragma unroll
    for (int index = 0; index < N; ++index) {
      const float value = (to_float(values.of[index]) - mean) * scale * (to_float(weights.of[index]) + added_to_weight);
      values.of[index] = from_float<Element>(bias == nullptr ? value : value + to_float(biases.of[index]));
    }
    store<N>(normed + at, values);
  }
}

template <typename Element>
void run(const DeviceNorm& n, CUstream_st* stream) {
  constexpr int kVector = kVectorBytes / sizeof(Element);
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const NormLaunch launch =
      norm_launch(n.rows, n.width, n.element,
                  bits(n.addend) | bits(n.residual) | bits(n.weight) | bits(n.bias) | bits(n.sum) | bits(n.normed));
  const auto blocks = static_cast<unsigned>(launch.blocks);
  const auto threads = static_cast<unsigned>(launch.threads);
  if (launch.in_vector == kVector) {
    launch_kernel(norm_of_block<Element, kVector>, blocks, threads, 0, stream, n);
  } else {
    launch_kernel(norm_of_block<Element, 1>, blocks, threads, 0, stream, n);
  }
}

}  // namespace

void launch_fused_norm(const DeviceNorm& n, CUstream_st* cuda_stream) {
  if (n.rows == 0) {
    return;
  }
  switch (n.element) {
    case DeviceElement::float32: run<float>(n, cuda_stream); break;
    case DeviceElement::float16: run<__half>(n, cuda_stream); break;
    case DeviceElement::bfloat16: run<__nv_bfloat16>(n, cuda_stream); break;
  }
}

}  // namespace decodelab
