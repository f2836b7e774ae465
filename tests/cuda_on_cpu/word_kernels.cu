// Kernels that use each word once, as CUDA's programming guide allows it.
#include "engine/kernels/launch.cuh"
#include "tests/cuda_on_cpu/word_kernels.cuh"

namespace decodelab::cuda_on_cpu {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void warp_words(WarpValues values) {
  const int lane = threadIdx.x;
  values.from_lane_5[lane] = __shfl_sync(kAllLanes, 100 + lane, 5);
  values.one_up[lane] = __shfl_up_sync(kAllLanes, 0.5 + lane, 1);
  const auto large = (1ull << 40) + static_cast<unsigned long long>(lane);
  values.three_down_of_8[lane] = __shfl_down_sync(kAllLanes, large, 3, 8);
  values.odd_lanes[lane] = __ballot_sync(kAllLanes, lane % 2);
  const int any = __any_sync(kAllLanes, lane > 30);
  const int all = __all_sync(kAllLanes, lane > 30);
  const int below = __all_sync(kAllLanes, lane < kLanes);
  values.any_and_all[lane] = (any != 0 ? 1 : 0) | (all != 0 ? 2 : 0) | (below != 0 ? 4 : 0);
  // The halves of the warp go different ways.
  const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  float value = static_cast<float>(lane);
  for (int turn = 0; turn < (lane < 16 ? 1 : 3); ++turn) {
    value = __shfl_xor_sync(half, value, 8, 16);
  }
  values.swapped_of_16[lane] = __shfl_sync(kAllLanes, value, lane);
}

__global__ void indices(int* out) {
  const int threads = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  const int block = static_cast<int>((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  const int thread = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  out[block * threads + thread] = block * 1000 + thread;
}

__global__ void atomics(const int* numbers, int count, int* counts, int* largest, int* least, int* tickets) {
  for (int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); at < count;
       at += static_cast<int>(gridDim.x * blockDim.x)) {
    atomicAdd(counts + numbers[at] % kBins, 1);
    atomicMax(largest, numbers[at]);
    atomicMin(least, numbers[at]);
    int ticket = 0;
    while (atomicCAS(tickets + ticket, 0, 1) != 0) {
      ++ticket;
    }
  }
}

__global__ void ticket_order(int* next, int* tickets) { tickets[threadIdx.x] = atomicAdd(next, 1); }

__device__ float turned_by_static_memory(float value) {
  __shared__ float values[64];
  __syncthreads();
  values[threadIdx.x] = value;
  __syncthreads();
  return values[63 - threadIdx.x];
}

__device__ float turned_by_ranges(float value) {
  device::SharedRanges ranges;
  float* even = ranges.take<float>("even", 32);
  float* odd = ranges.take<float>("odd", 32);
  (threadIdx.x % 2 == 0 ? even : odd)[threadIdx.x / 2] = value;
  __syncthreads();
  const unsigned from = 63 - threadIdx.x;
  return (from % 2 == 0 ? even : odd)[from / 2];
}

/// Turns the lanes of each half of a warp around. Each half waits for itself only.
__device__ float turned_in_halves(float value) {
  __shared__ float values[64];
  const unsigned half = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  values[threadIdx.x] = value;
  __syncwarp(half);
  value = values[threadIdx.x ^ 15];
  __syncwarp(half);
  values[threadIdx.x] = value;
  __syncwarp(half);
  return values[threadIdx.x ^ 15];
}

/// Three turns are one turn.
__global__ void shared_words(const float* from, float* to) {
  float value = turned_by_static_memory(from[threadIdx.x]);
  value = turned_by_ranges(value);
  value = turned_in_halves(value);
  to[threadIdx.x] = turned_by_static_memory(value);
}

}  // namespace

void launch_warp_words(const WarpValues& values) { launch_kernel(warp_words, 1, kLanes, 0, nullptr, values); }
void launch_indices(int* out) { launch_kernel(indices, dim3(2, 3, 2), dim3(4, 2, 3), 0, nullptr, out); }
void launch_atomics(const int* numbers, int count, int* counts, int* largest, int* least, int* tickets) {
  launch_kernel(atomics, 3, 48, 0, nullptr, numbers, count, counts, largest, least, tickets);
}
void launch_ticket_order(int* next, int* tickets, int threads) {
  launch_kernel(ticket_order, 1, static_cast<unsigned>(threads), 0, nullptr, next, tickets);
}
void launch_shared_words(const float* from, float* to) {
  launch_kernel(shared_words, 1, 64, 64 * sizeof(float), nullptr, from, to);
}

}  // namespace decodelab::cuda_on_cpu
