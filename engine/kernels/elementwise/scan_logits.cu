// Two kernels: a block for each part of a row finds its maximum, its sum of exponentials and what is greater than one
// logit; a block for each row then finds where the largest logits are.
#include <cmath>
#include <cstring>

#include "engine/kernels/device_float.cuh"
#include "engine/kernels/elementwise/scan_logits.cuh"
#include "engine/kernels/launch.cuh"

namespace decodelab {
namespace {

using namespace device;

constexpr int kScanThreads = 256;
constexpr int kScanWarps = kScanThreads / static_cast<int>(kWarpThreads);
constexpr int kOfALane = static_cast<int>(kScanGroup / kWarpThreads);
constexpr int kGroupsOfAWarp = static_cast<int>(kScanPart / kScanGroup) / kScanWarps;

__device__ inline std::int64_t groups_of(const DeviceScan& s) { return (s.width + kScanGroup - 1) / kScanGroup; }
__device__ inline std::int64_t parts_of(const DeviceScan& s) { return (s.width + kScanPart - 1) / kScanPart; }
__device__ inline float minus_infinity() { return -INFINITY; }

/// Returns the bits of a float as a number that is in the order of the floats; both zeros are one.
__device__ inline unsigned ordered(float value) {
  const float whole = value + 0.0f;
  unsigned bits;
  memcpy(&bits, &whole, sizeof bits);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

template <typename Element>
__global__ void scan_part(DeviceScan s) {
  __shared__ float scratch[kWarpThreads];
  const std::int64_t row = blockIdx.y;
  const Element* logits = static_cast<const Element*>(s.logits) + row * s.stride;
  const float own = to_float(logits[s.ids[row]]);
  const int lane = threadIdx.x % kWarpThreads;
  const int warp = threadIdx.x / kWarpThreads;
  float values[kGroupsOfAWarp * kOfALane];
  float largest = kLowest;
  float greater = 0;
  float nans = 0;
#pragma unroll
  for (int turn = 0; turn < kGroupsOfAWarp; ++turn) {
    const std::int64_t group = blockIdx.x * (kScanPart / kScanGroup) + turn * kScanWarps + warp;
    float of_group = minus_infinity();
#pragma unroll
    for (int index = 0; index < kOfALane; ++index) {
      const std::int64_t at = group * kScanGroup + index * kWarpThreads + lane;
      const float value = at < s.width ? to_float(logits[at]) : minus_infinity();
      values[turn * kOfALane + index] = value;
      of_group = fmaxf(of_group, value);
      greater += value > own ? 1.0f : 0.0f;
      nans += value != value ? 1.0f : 0.0f;
    }
    of_group = warp_max(of_group);
    largest = fmaxf(largest, of_group);
    if (lane == 0 && group * kScanGroup < s.width) {
      s.group_maxima[row * groups_of(s) + group] = of_group;
    }
  }
  largest = block_max(largest, scratch);
  float sum = 0;
#pragma unroll
  for (int index = 0; index < kGroupsOfAWarp * kOfALane; ++index) {
    sum += expf(values[index] - largest);
  }
  sum = block_sum(sum, scratch);
  greater = block_sum(greater, scratch);
  nans = block_sum(nans, scratch);
  if (threadIdx.x == 0) {
    DevicePart* part = s.parts + row * parts_of(s) + blockIdx.x;
    part->largest = largest;
    part->sum = sum;
    part->greater = static_cast<std::int32_t>(greater);
    part->nans = static_cast<std::int32_t>(nans);
  }
}

/// Returns the n-th largest of `count` numbers, 1 <= n <= count, in the form of ordered() and to every thread: found
/// bit by bit, from how many are as large.
template <typename Element>
__device__ unsigned nth_largest(const Element* values, std::int64_t count, std::int64_t n, float* scratch) {
  unsigned found = 0;
  for (unsigned bit = 0x80000000u; bit != 0; bit >>= 1) {
    float mine = 0;
    for (std::int64_t at = threadIdx.x; at < count; at += kScanThreads) {
      mine += ordered(to_float(values[at])) >= (found | bit) ? 1.0f : 0.0f;
    }
    if (block_sum(mine, scratch) >= static_cast<float>(n)) {
      found |= bit;
    }
  }
  return found;
}

/// The largest logits of one row, as many as there is room for.
struct Found {
  float* logits;
  std::int32_t* ids;
  std::int64_t capacity;
  int* count;  ///< In shared memory; it goes on where there is no room.

  __device__ void add(float logit, std::int64_t id) const {
    const int place = atomicAdd(count, 1);
    if (place < capacity) {
      logits[place] = logit;
      ids[place] = static_cast<std::int32_t>(id);
    }
  }
};

/// Adds all logits that are at least `bound`, by the groups that have some.
template <typename Element>
__device__ void add_from_groups(const DeviceScan& s, const Element* logits, const float* maxima, unsigned bound,
                                const Found& found) {
  const int lane = threadIdx.x % kWarpThreads;
  for (std::int64_t group = threadIdx.x / kWarpThreads; group < groups_of(s); group += kScanWarps) {
    if (ordered(maxima[group]) < bound) {
      continue;
    }
    for (int index = 0; index < kOfALane; ++index) {
      const std::int64_t at = group * kScanGroup + index * kWarpThreads + lane;
      const float value = at < s.width ? to_float(logits[at]) : minus_infinity();
      if (ordered(value) >= bound && value > minus_infinity()) {
        found.add(value, at);
      }
    }
  }
}

/// Adds the logits that are larger than the n-th, and of those that equal it the ones of the lowest ids: where so many
/// are equal that there is no room for all. What thread 0 wrote before it is seen by all.
template <typename Element>
__device__ void add_in_order(const DeviceScan& s, const Element* logits, std::int64_t n, const Found& found,
                             float* scratch) {
  const unsigned last = nth_largest(logits, s.width, n, scratch);
  for (std::int64_t at = threadIdx.x; at < s.width; at += kScanThreads) {
    const float value = to_float(logits[at]);
    if (ordered(value) > last) {
      found.add(value, at);
    }
  }
  __syncthreads();
  for (std::int64_t at = 0; threadIdx.x == 0 && at < s.width && *found.count < s.capacity; ++at) {
    const float value = to_float(logits[at]);
    if (ordered(value) == last && value > minus_infinity()) {
      found.add(value, at);
    }
  }
}

template <typename Element>
__global__ void find_largest(DeviceScan s) {
  __shared__ float scratch[kWarpThreads];
  __shared__ int written;
  const std::int64_t row = blockIdx.x;
  const std::int64_t groups = groups_of(s);
  const std::int64_t top = s.tops[row] < s.width ? s.tops[row] : s.width;
  const float* maxima = s.group_maxima + row * groups;
  const Element* logits = static_cast<const Element*>(s.logits) + row * s.stride;
  const Found found{s.top_logits + row * s.capacity, s.top_ids + row * s.capacity, s.capacity, &written};
  if (threadIdx.x == 0) {
    written = 0;
  }
  __syncthreads();
  if (top > 0) {
    // With fewer groups than n every logit may be wanted.
    const unsigned bound = top <= groups ? nth_largest(maxima, groups, top, scratch) : 0;
    add_from_groups(s, logits, maxima, bound, found);
  }
  __syncthreads();
  if (written > s.capacity) {
    __syncthreads();  // All have seen it.
    if (threadIdx.x == 0) {
      written = 0;
    }
    add_in_order(s, logits, top, found, scratch);
  }
  if (threadIdx.x == 0) {
    s.found[row] = written;
  }
}

template <typename Element>
void run(const DeviceScan& s, bool any_top, CUstream_st* stream) {
  const dim3 parts(static_cast<unsigned>(scan_parts(s.width)), static_cast<unsigned>(s.rows));
  launch_kernel(scan_part<Element>, parts, kScanThreads, 0, stream, s);
  if (any_top) {
    launch_kernel(find_largest<Element>, static_cast<unsigned>(s.rows), kScanThreads, 0, stream, s);
  }
}

}  // namespace

void launch_scan_logits(const DeviceScan& s, bool any_top, CUstream_st* cuda_stream) {
  if (s.rows == 0) {
    return;
  }
  switch (s.element) {
    case DeviceElement::float32: run<float>(s, any_top, cuda_stream); break;
    case DeviceElement::float16: run<__half>(s, any_top, cuda_stream); break;
    case DeviceElement::bfloat16: run<__nv_bfloat16>(s, any_top, cuda_stream); break;
  }
}

}  // namespace decodelab
