// Elements in fp32, fp16 and bf16 as floats, alone and sixteen bytes at a time, and reductions over a block.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engine/kernels/device_kernels.h"

namespace decodelab::device {

constexpr unsigned kAllLanes = 0xffffffffu;
/// The lowest finite float: a maximum that starts at it never makes inf - inf.
constexpr float kLowest = -3.402823466e+38f;

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename Element>
__device__ Element from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

/// `N` elements that are moved at once.
template <typename Element, int N>
struct alignas(N * sizeof(Element)) Elements {
  Element of[N];
};
template <int N, typename Element>
__device__ inline Elements<Element, N> load(const Element* from) {
  return *reinterpret_cast<const Elements<Element, N>*>(from);
}
template <int N, typename Element>
__device__ inline void store(Element* to, const Elements<Element, N>& values) {
  *reinterpret_cast<Elements<Element, N>*>(to) = values;
}

__device__ inline float warp_sum(float value) {
  for (int offset = kWarpThreads / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}
__device__ inline float warp_max(float value) {
  for (int offset = kWarpThreads / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  return value;
}

/// Returns the sum over all threads of a block, to each of them; `scratch` is 32 floats of shared memory that no other
/// code uses meanwhile.
__device__ inline float block_sum(float value, float* scratch) {
  value = warp_sum(value);
  __syncthreads();  // An earlier sum may still be read.
  if (threadIdx.x % kWarpThreads == 0) {
    scratch[threadIdx.x / kWarpThreads] = value;
  }
  __syncthreads();
  const int warps = blockDim.x / kWarpThreads;
  const int lane = threadIdx.x % kWarpThreads;
  return warp_sum(lane < warps ? scratch[lane] : 0.0f);
}
__device__ inline float block_max(float value, float* scratch) {
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % kWarpThreads == 0) {
    scratch[threadIdx.x / kWarpThreads] = value;
  }
  __syncthreads();
  const int warps = blockDim.x / kWarpThreads;
  const int lane = threadIdx.x % kWarpThreads;
  return warp_max(lane < warps ? scratch[lane] : kLowest);
}

}  // namespace decodelab::device
