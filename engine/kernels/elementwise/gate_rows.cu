// The activation of a gate and its multiplication on the device: a thread for each sixteen bytes of the result.
#include "engine/kernels/device_float.cuh"
#include "engine/kernels/elementwise/gate_rows.cuh"
#include "engine/kernels/launch.cuh"

namespace decodelab {
namespace {

using namespace device;

constexpr int kGateThreads = 256;

__device__ inline float activated(float x, Activation activation) {
  switch (activation) {
    // x (1 + tanh(y)) / 2 as x times a logistic function, which keeps its digits where both cancel.
    case Activation::gelu_tanh: return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
    case Activation::gelu_erf: return 0.5f * x * erfcf(x * -0.70710678118654752f);
    case Activation::silu: return x / (1.0f + expf(-x));
    case Activation::relu: break;
  }
  return fmaxf(x, 0.0f);
}

template <typename Element, int N>
__global__ void gate_of_rows(DeviceGate g) {
  const std::int64_t pieces = g.width / N;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kGateThreads + threadIdx.x;
  if (item >= g.rows * pieces) {
    return;
  }
  const std::int64_t row = item / pieces;
  const std::int64_t column = item % pieces * N;
  const Element* from = static_cast<const Element*>(g.up) + row * 2 * g.width + column;
  Elements<Element, N> gate = load<N>(from);
  const Elements<Element, N> up = load<N>(from + g.width);
#pragma unroll
  for (int index = 0; index < N; ++index) {
    gate.of[index] = from_float<Element>(activated(to_float(gate.of[index]), g.activation) * to_float(up.of[index]));
  }
  store<N>(static_cast<Element*>(g.out) + row * g.width + column, gate);
}

template <typename Element>
void run(const DeviceGate& g, CUstream_st* stream) {
  constexpr int kVector = kVectorBytes / sizeof(Element);
  const auto addresses = reinterpret_cast<std::uintptr_t>(g.up) | reinterpret_cast<std::uintptr_t>(g.out);
  const bool in_vectors = addresses % kVectorBytes == 0 && g.width % kVector == 0;
  const std::int64_t items = g.rows * g.width / (in_vectors ? kVector : 1);
  const auto blocks = static_cast<unsigned>((items + kGateThreads - 1) / kGateThreads);
  if (in_vectors) {
    launch_kernel(gate_of_rows<Element, kVector>, blocks, kGateThreads, 0, stream, g);
  } else {
    launch_kernel(gate_of_rows<Element, 1>, blocks, kGateThreads, 0, stream, g);
  }
}

}  // namespace

void launch_gate_rows(const DeviceGate& g, CUstream_st* cuda_stream) {
  if (g.rows == 0) {
    return;
  }
  switch (g.element) {
    case DeviceElement::float32: run<float>(g, cuda_stream); break;
    case DeviceElement::float16: run<__half>(g, cuda_stream); break;
    case DeviceElement::bfloat16: run<__nv_bfloat16>(g, cuda_stream); break;
  }
}

}  // namespace decodelab
