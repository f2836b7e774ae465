// The masked softmax on the device: online maximum and sum (Milakov and Gimelshein 2018, arXiv:1805.02867), one block
// or one warp per row.
#include "engine/kernels/attention/masked_softmax.cuh"
#include "engine/kernels/device_float.cuh"
#include "engine/kernels/launch.cuh"

namespace decodelab {
namespace {

using namespace device;

/// Returns the number of keys that the query of a row of scores sees, at least one and at most all.
__device__ std::int64_t seen_keys(const DeviceSoftmax& s, std::int64_t row) {
  const std::int64_t token = row / s.shared_heads % s.tokens;
  const std::int64_t batch = row / s.shared_heads / s.tokens / s.kv_heads;
  const std::int64_t visible = s.held[batch * s.held_stride] + token + 1;
  return visible < s.keys ? visible : s.keys;
}

/// The largest score so far and the sum of exp(score - largest).
struct Running {
  float most = kLowest;
  float total = 0.0f;

  __device__ void add(float score) {
    if (score > most) {
      total *= __expf(most - score);
      most = score;
    }
    total += __expf(score - most);
  }
};

template <typename Element, int N>
__global__ void softmax_of_block(DeviceSoftmax s) {
  __shared__ float scratch[kWarpThreads];
  const std::int64_t row = blockIdx.x;
  Element* scores = static_cast<Element*>(s.scores) + row * s.keys;
  const std::int64_t seen = seen_keys(s, row);
  Running mine;
  for (std::int64_t at = static_cast<std::int64_t>(threadIdx.x) * N; at < seen;
       at += static_cast<std::int64_t>(blockDim.x) * N) {
    const Elements<Element, N> read = load<N>(scores + at);
#pragma unroll
    for (int index = 0; index < N; ++index) {
      if (at + index < seen) {
        mine.add(to_float(read.of[index]) * s.unscale);
      }
    }
  }
  const float most = block_max(mine.most, scratch);
  const float scale = 1.0f / block_sum(mine.total * __expf(mine.most - most), scratch);
  for (std::int64_t at = static_cast<std::int64_t>(threadIdx.x) * N; at < s.keys;
       at += static_cast<std::int64_t>(blockDim.x) * N) {
    const Elements<Element, N> read = load<N>(scores + at);
    Elements<Element, N> weights;
#pragma unroll
    for (int index = 0; index < N; ++index) {
      const float weight = at + index < seen ? __expf(to_float(read.of[index]) * s.unscale - most) * scale : 0.0f;
      weights.of[index] = from_float<Element>(weight);
    }
    store<N>(scores + at, weights);
  }
}

/// Where kPerLane > 0 a thread keeps every 32nd score of its warp's row; else the row is read twice.
template <typename Element, int kPerLane>
__global__ void softmax_of_warp(DeviceSoftmax s) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / kWarpThreads) + threadIdx.x / kWarpThreads;
  if (row >= s.rows) {
    return;  // The whole warp returns, so that no reduction lacks a thread.
  }
  const int lane = threadIdx.x % kWarpThreads;
  Element* scores = static_cast<Element*>(s.scores) + row * s.keys;
  const std::int64_t seen = seen_keys(s, row);
  if constexpr (kPerLane > 0) {
    float kept[kPerLane];
    float most = kLowest;
#pragma unroll
    for (int index = 0; index < kPerLane; ++index) {
      const std::int64_t at = index * kWarpThreads + lane;
      kept[index] = at < seen ? to_float(scores[at]) * s.unscale : kLowest;
      most = fmaxf(most, kept[index]);
    }
    most = warp_max(most);
    float total = 0.0f;
#pragma unroll
    for (int index = 0; index < kPerLane; ++index) {
      kept[index] = index * kWarpThreads + lane < seen ? __expf(kept[index] - most) : 0.0f;
      total += kept[index];
    }
    const float scale = 1.0f / warp_sum(total);
#pragma unroll
    for (int index = 0; index < kPerLane; ++index) {
      const std::int64_t at = index * kWarpThreads + lane;
      if (at < s.keys) {
        scores[at] = from_float<Element>(kept[index] * scale);
      }
    }
  } else {
    Running mine;
    for (std::int64_t at = lane; at < seen; at += kWarpThreads) {
      mine.add(to_float(scores[at]) * s.unscale);
    }
    const float most = warp_max(mine.most);
    const float scale = 1.0f / warp_sum(mine.total * __expf(mine.most - most));
    for (std::int64_t at = lane; at < s.keys; at += kWarpThreads) {
      const float weight = at < seen ? __expf(to_float(scores[at]) * s.unscale - most) * scale : 0.0f;
      scores[at] = from_float<Element>(weight);
    }
  }
}

template <typename Element>
void run_block(const DeviceSoftmax& s, const SoftmaxLaunch& launch, CUstream_st* stream) {
  constexpr int kVector = kVectorBytes / sizeof(Element);
  const auto blocks = static_cast<unsigned>(launch.blocks);
  const auto threads = static_cast<unsigned>(launch.threads);
  if (launch.in_vector == kVector) {
    launch_kernel(softmax_of_block<Element, kVector>, blocks, threads, 0, stream, s);
  } else {
    launch_kernel(softmax_of_block<Element, 1>, blocks, threads, 0, stream, s);
  }
}

template <typename Element>
void run_warp(const DeviceSoftmax& s, const SoftmaxLaunch& launch, CUstream_st* stream) {
  const auto blocks = static_cast<unsigned>(launch.blocks);
  const auto threads = static_cast<unsigned>(launch.threads);
  switch (launch.per_lane) {
    case 1: launch_kernel(softmax_of_warp<Element, 1>, blocks, threads, 0, stream, s); break;
    case 2: launch_kernel(softmax_of_warp<Element, 2>, blocks, threads, 0, stream, s); break;
    case 4: launch_kernel(softmax_of_warp<Element, 4>, blocks, threads, 0, stream, s); break;
    case 8: launch_kernel(softmax_of_warp<Element, 8>, blocks, threads, 0, stream, s); break;
    case 16: launch_kernel(softmax_of_warp<Element, 16>, blocks, threads, 0, stream, s); break;
    case 32: launch_kernel(softmax_of_warp<Element, 32>, blocks, threads, 0, stream, s); break;
    case 64: launch_kernel(softmax_of_warp<Element, 64>, blocks, threads, 0, stream, s); break;
    default: launch_kernel(softmax_of_warp<Element, 0>, blocks, threads, 0, stream, s); break;
  }
}

}  // namespace

void launch_block_softmax(const DeviceSoftmax& s, CUstream_st* cuda_stream) {
  if (s.rows == 0) {
    return;
  }
  const SoftmaxLaunch launch =
      block_softmax_launch(s.rows, s.keys, s.element, reinterpret_cast<std::uintptr_t>(s.scores));
  switch (s.element) {
    case DeviceElement::float32: run_block<float>(s, launch, cuda_stream); break;
    case DeviceElement::float16: run_block<__half>(s, launch, cuda_stream); break;
    case DeviceElement::bfloat16: run_block<__nv_bfloat16>(s, launch, cuda_stream); break;
  }
}

void launch_warp_softmax(const DeviceSoftmax& s, CUstream_st* cuda_stream) {
  if (s.rows == 0) {
    return;
  }
  const SoftmaxLaunch launch = warp_softmax_launch(s.rows, s.keys);
  switch (s.element) {
    case DeviceElement::float32: run_warp<float>(s, launch, cuda_stream); break;
    case DeviceElement::float16: run_warp<__half>(s, launch, cuda_stream); break;
    case DeviceElement::bfloat16: run_warp<__nv_bfloat16>(s, launch, cuda_stream); break;
  }
}

}  // namespace decodelab
